"""The classroom: questions, five answers to each, and lessons that the day copy learns at once.

The journal is the source of truth. A lesson is on disk before its outcome is reported, and the day copy is built from
the journal alone. After a crash, a new day copy learns the journal's lessons that the saved one lacks, in order.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.journal import LESSON, LIVE, SESSION, entry_of
from conf.storage.journal_file import append, retract
from conf.storage.locks import running_night
from flows.teaching.answers import Event, Question, Questions, RefusedError, Sampling, sample, sample_what_fits
from flows.teaching.book import Book
from flows.teaching.day import Day
from flows.teaching.engine import Engine
from flows.teaching.entries import Kind, Lines, any_pick, conversation, entries_of, teach_what_is_implied
from models.lessons.outcome import LessonOutcome
from tasks.teaching.lessons import Lesson
from tasks.workers.worker import WorkerDiedError, WorkerEndedError


class Classroom:
    """The state behind the page. `open` and `close` are thread-safe. Call all other methods from one event loop."""

    def __init__(self, home: Home, config: NightConfig) -> None:
        self.home, self.config = home, config
        self.on_first_open: Callable[[], object] = lambda: None
        self.start_night: Callable[[], object] = lambda: None  # returns the file that the night's output goes to
        self.on_lesson: Callable[[str, dict[str, float | None]], object] = lambda champion, figures: None
        self.why = "the model is being loaded"
        self.live = True  # whether lessons are learned at once, or only at night
        self.session = secrets.token_hex(6)
        self.book = Book()
        self._day: Day | None = None
        self._engine: Engine | None = None  # the one that was opened last
        self._taught: Path | None = None  # the champion that wrote the answers to `questions`
        self.questions = Questions(self.home.journal)
        self._answering = asyncio.Lock()
        self._order = asyncio.Lock()  # lessons go into the journal, and to the learner, in the same order
        self._learning = 0  # number of lessons that are being learned or undone, or wait for that
        self._changed = asyncio.Event()  # set when the state changes, and then replaced by a new event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, engine: Engine) -> bool:
        """Build the day copy on the engine's champion and open the classroom, or return False if a night has begun."""
        day = Day(self.home, self.config, engine.champion, engine)
        count = len(day.book.lessons)

        def goes_on(number: int) -> bool:
            self._say(f"learning again what you taught: {number} of {count}")
            return running_night(self.home.root) is None  # during a night, the classroom would be closed at once

        if not day.make(goes_on):
            day.end()
            return False
        if self._taught != engine.champion:  # nobody must teach this champion from answers of the one before
            self._taught, self.questions = engine.champion, Questions(self.home.journal)
        self.book, self._day, self._engine = day.book, day, engine
        self._say("")
        first, self.on_first_open = self.on_first_open, lambda: None
        first()
        return True

    def close(self, why: str, retry_after: int) -> None:
        """Close the classroom, show the reason `why`, and discard the day copy. The lessons stay in the journal."""
        day, self._day, self.why = self._day, None, why
        if day is not None:
            day.end()
        self._say(why)

    @property
    def under_way(self) -> int:
        """The number of questions that are being answered: 0 or 1."""
        return int(self._answering.locked())

    async def ask(self, text: str, follow_up: bool = False, again: str = "") -> AsyncIterator[Event]:
        """Yield five answers in pieces (see `answers.sample`), and finally a `done` event with all answers shown.

        The events do not tell which model wrote an answer. `follow_up`: whether the question continues the conversation
        from the last answer that the owner judged good. `again`: the name of an earlier question to ask again. Raises
        RefusedError if the question cannot be answered.
        """
        day, earlier = self.ready_for(text), self.questions.latest
        question = self._new_question(text, follow_up, again)
        async for event in self.answers(day, question, sample):
            yield event
        yield "done", question.described()
        if not again:
            self.notice(earlier, question)
        if self.live and not question.held_out and (pick := any_pick(question)) is not None:
            with contextlib.suppress(WorkerEndedError):  # a night begins
                self._in_background(day.run(day.prepare, pick, lambda: question is self.questions.latest))

    async def answers(self, day: Day, question: Question, sampling: Sampling) -> AsyncIterator[Event]:
        """Yield the answers to a question. Meanwhile, the learner waits, so that the engine has the machine.

        The newest copy that is ready answers: while a lesson is being learned, that is the copy before it.
        """
        try:
            async with self._answering:
                assert day.engine is not None
                day.engine.stop.clear()
                question.behind, question.held_out = self._learning > 0, day.is_held_out(question.messages)
                if not question.behind:
                    await day.offer()
                day.pause()
                try:
                    async for event in sample_what_fits(sampling, day.engine, question):
                        yield event
                finally:
                    day.pause(False)
        except (WorkerEndedError, WorkerDiedError) as error:
            raise RefusedError(503, self.why or str(error)) from None
        except ValueError as error:
            raise RefusedError(400, str(error)) from None

    async def stop(self) -> None:
        """Stop writing the current answers. The owner can then teach from the text written so far."""
        if self._engine is not None:
            self._engine.stop.set()
        async with self._answering:
            pass

    async def teach(self, kind: Kind, answer: str | None = None, text: str = "", from_char: int = -1) -> dict[str, Any]:
        """Write a lesson to the journal, have the day copy learn it, and return the outcome.

        `answer`: the answer's name. `text`, `from_char`: as for `entries_of`. If the lesson is refused, raises
        RefusedError and writes nothing. Raises InputError if the journal cannot be written.
        """
        self.opened()
        await self.stop()
        if kind == "words":
            return await self.teach_lines(lambda _, keys: [entry_of({"kind": "words", "text": text, **keys})])
        question, shown = self.questions.named(answer or "")
        taught = await self.teach_lines(
            lambda champion, keys: entries_of(kind, question, shown, champion, text, from_char, keys),
            lambda lesson: question.note(kind, shown, text, lesson, self.home.journal),
            lambda: question.replaced_by(kind, shown, self.book.lessons),
        )
        return taught | ({"authors": question.authors} if taught["lesson"] == question.pick[-1] else {})

    async def teach_lines(
        self, lines: Lines, then: Callable[[str], object] = lambda _: None, replaced: Callable[[], str] = lambda: ""
    ) -> dict[str, Any]:
        """Teach a lesson. `lines` returns the lesson's entries, given the champion's digest and keys for each entry.

        `then` is called with the lesson's name once they are in the journal, before the lesson is learned. `replaced`
        returns the name of an earlier lesson that this one replaces, or an empty string.
        """
        began = time.perf_counter()
        with self._at_work():  # if the learner ends, the next day copy will learn it
            async with self._order:
                day, name, earlier = self.opened(), secrets.token_hex(6), replaced()
                keys = {LESSON: name, LIVE: self.live, SESSION: self.session}
                try:
                    entries = [day.marked(entry) for entry in lines(day.champion.name, keys)]
                    written = await asyncio.to_thread(append, self.home.journal, entries)
                    if earlier:
                        await asyncio.to_thread(self.questions.restore, day.book.lessons[earlier])
                    await asyncio.to_thread(then, name)
                except ValueError as error:
                    raise RefusedError(400, str(error)) from None
                saved = time.perf_counter() - began
                work = [await self._take_back(day, earlier)] if earlier else []
                lesson = Lesson(name, tuple(entries), written, self.live)
                day.book.lessons[name] = lesson
                work.append(day.run(day.learn, lesson, began))
            self._publish()
            await asyncio.gather(*work)
        self._in_background(day.offer())  # now, so that no question has to wait for it
        later = LessonOutcome(why=self.why or "the learner ended, see teach.log; the night learns it")
        outcome = day.book.outcomes.setdefault(name, later)
        self.on_lesson(day.champion.name, day.book.figures(name))
        where = f"{written.file}:{written.line}"
        return {"lesson": name, **asdict(outcome), "saved_seconds": saved, "journal": where, "day": day.digest}

    async def undo(self, name: str) -> dict[str, Any]:
        """Undo a lesson: remove it from the journal and the day copy, as if it had never been taught.

        Raises RefusedError if there is no such lesson, and InputError if the journal cannot be written.
        """
        began = time.perf_counter()
        with self._at_work():  # if the learner ends, the journal is already correct
            async with self._order:
                day = self.opened()
                if (lesson := day.book.lessons.get(name)) is None:
                    raise RefusedError(404, "there is no such lesson, or it was undone already")
                forgetting = await self._take_back(day, name)
                await asyncio.to_thread(self.questions.restore, lesson)
            await forgetting
        self._in_background(day.offer())  # now, so that no question has to wait for it
        return {"lesson": name, "day": day.digest, "seconds": time.perf_counter() - began}

    async def _take_back(self, day: Day, name: str) -> Awaitable[None]:
        """Remove a lesson from the journal. To wait until the day copy has forgotten it, too, await the result."""
        await asyncio.to_thread(retract, day.book.lessons[name].written)
        day.book.remove(name)
        return day.run(day.forget, name)

    def set_live(self, live: bool) -> None:
        """Set whether new lessons are learned at once or only at night."""
        self.live = live
        self._publish()

    def state(self) -> dict[str, Any]:
        """Return the state that the status line and the list of lessons show."""
        day = self._day
        return {
            "ready": day is not None,
            "why": self.why,
            "live": self.live,
            "learning": self._learning > 0,
            "champion": day and day.champion.name,
            "day": day and day.digest,
            "lessons": self.book.shown(),
            "guessed": self.book.guessed(),
            "blind": self.book.blind(),
            "day_kl": self.book.day_kl(),
            "day_kl_limit": self.config.teach.kl_of_day,
        }

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the current state at once, and the new state whenever it changes."""
        self._loop = asyncio.get_running_loop()
        while True:
            changed = self._changed
            yield self.state()
            await changed.wait()

    def _publish(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Mark the classroom as learning, and suppress the errors of a learner that ends."""
        self._learning += 1
        self._publish()
        try:
            with contextlib.suppress(WorkerEndedError, WorkerDiedError):
                yield
        finally:
            self._learning -= 1
            self._publish()

    def _say(self, why: str) -> None:
        self.why = why
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._publish)

    def ready_for(self, text: str) -> Day:
        """Return the day copy if it can answer this text now; otherwise raise a RefusedError."""
        if self.under_way:
            raise RefusedError(429, "another question is being answered: stop it first")
        if not text.strip():
            raise RefusedError(400, "the question is empty")
        return self.opened()

    def opened(self) -> Day:
        """Return the day copy. Raises RefusedError while the classroom is closed."""
        if self._day is None:
            raise RefusedError(503, self.why)
        return self._day

    def _new_question(self, text: str, follow_up: bool, again: str) -> Question:
        earlier, unfinished = conversation([*self.book.lessons.values()]) if follow_up else ([], ())
        if follow_up and not earlier:
            raise RefusedError(409, "there is no answer to follow up: pick one first")
        question = Question("", [*earlier, {"role": "user", "content": text}], unfinished=unfinished)
        return self.questions.add(self.questions.like(again) or question)

    def notice(self, earlier: Question | None, question: Question) -> None:
        """Teach, in the background, what the owner implies by asking `question` after `earlier`."""
        lessons = self.book.lessons.values()
        self._in_background(teach_what_is_implied(self.teach_lines, self.config.teach, lessons, earlier, question))

    def _in_background(self, work: Awaitable[object]) -> None:
        """Run work in the background and ignore its errors. The next question or lesson reports any lasting error."""

        async def guarded() -> None:
            with contextlib.suppress(Exception):
                await work

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
