"""The classroom: questions, five answers to each, and lessons, which the day copy learns at once.

The journal is the truth. A lesson is on the disk before anything is said of it, and the day copy is made from the
journal's lines alone: after a crash they are learnt again, in their order.
"""

import asyncio
import contextlib
import secrets
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from conf.storage.journal import Entry, Preference, entry_of
from conf.storage.journal_file import Written, retract, write
from conf.storage.locks import running_night
from flows.teaching.anchors import anchors
from flows.teaching.answers import Event, Question, Shown, sample
from flows.teaching.engine import Engine, EngineEndedError
from flows.teaching.entries import Kind, blind_test, conversation, entries_of, told
from models.engine.environment import trainer_environment
from models.lessons.preference_data import is_held_out
from tasks.journal.spans import night_of
from tasks.teaching import learner_process
from tasks.teaching.keys import LESSON, LIVE, SESSION
from tasks.teaching.lessons import Lesson, lessons_without
from tasks.workers import Worker, WorkerDiedError, WorkerEndedError

LOG = "teach.log"  # of engine and learner, under the home
QUESTIONS = 100  # whose answers can be taught from; the latest
LAST = 10  # picks that "it would have guessed" counts


class RefusedError(Exception):
    """A request that cannot be done; one line with the reason. `status`: HTTP's."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Outcome:
    """What became of a lesson (see `learner_process.Learnt`); `seconds` that it took to learn."""

    learnt: bool = False
    change_nats: float | None = None
    kl: float | None = None
    seconds: float | None = None
    guessed: bool | None = None
    why: str = ""
    day_kl: float | None = None


@dataclass
class _Open:
    """What is there while the classroom is open."""

    champion: Path
    engine: Engine
    learner: Worker
    folder: Path  # of the adapters
    day: str  # the day copy's digest
    saved: str = ""  # the digest of the adapter that the engine has


class Classroom:
    """The state behind the page. `open` and `close` may be called from any thread, everything else from one loop."""

    def __init__(self, home: Home, config: NightConfig) -> None:
        self.home, self.config = home, config
        self.on_first_open: Callable[[], object] = lambda: None
        self.on_lesson: Callable[[str, dict[str, float | None]], object] = lambda champion, figures: None
        self.why = "the model is being loaded"
        self.live = True  # lessons are learnt at once, and not by night only
        self.under_way = 0  # questions that are being answered
        self.session = secrets.token_hex(6)
        self.undone = 0  # lessons of this session
        self.lessons: OrderedDict[str, Lesson] = OrderedDict()
        self.outcomes: dict[str, Outcome] = {}
        self._open: _Open | None = None
        self._questions: OrderedDict[str, Question] = OrderedDict()
        self._asked = 0
        self._stop = asyncio.Event()
        self._machine = asyncio.Lock()  # sampling and learning take turns
        self._order = asyncio.Lock()  # lessons are learnt in the journal's order
        self._watchers: set[asyncio.Queue[dict[str, Any]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # -- opening and closing

    def open(self, engine: Engine, champion: Path) -> None:
        """Make the day copy of a champion, from the journal's lessons that it does not have, and open.

        `engine`: one that holds the champion.
        """
        learner = Worker("learner", trainer_environment(), self.home.root / LOG)
        day = learner.call(learner_process.start, champion, self.config, anchors(self.home, engine))
        lessons = lessons_without(champion, self.home.journal, self.home.nights, self.config.name)
        self.lessons, self.outcomes = OrderedDict((lesson.name, lesson) for lesson in lessons), {}
        for number, lesson in enumerate(lessons, 1):
            if running_night(self.home.root):  # the supervisor closes at once
                learner.end()
                return
            self._say(f"learning again what you taught: {number} of {len(lessons)}")
            if not self._why_not(lesson):
                day = self._learnt(lesson, learner.call(learner_process.learn, lesson.name, lesson.entries), None)
        folder = Path(tempfile.mkdtemp(prefix="nightschool-day-"))
        self._open = _Open(champion, engine, learner, folder, day)
        self._say("")
        first, self.on_first_open = self.on_first_open, lambda: None
        first()

    def close(self, why: str, retry_after: int) -> None:
        """End the day copy, for this reason. Its lessons stay in the journal."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.learner.end()
            shutil.rmtree(opened.folder, ignore_errors=True)
        self._say(why)

    def _say(self, why: str) -> None:
        self.why = why
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._publish)

    # -- asking

    async def ask(self, text: str, follow_up: bool = False) -> AsyncIterator[Event]:
        """Yield the pieces of five answers, then `done` with those that are shown.

        Four samples come from the day copy and one from the champion, in random order; which is which is told nobody.
        Equal ones are shown once, and others sampled instead. `follow_up`: the question goes on after the last answer
        that was picked, praised or corrected. Raises RefusedError.
        """
        if self._machine.locked() and self.under_way:
            raise RefusedError(429, "another question is being answered: stop it first")
        if not text.strip():
            raise RefusedError(400, "the question is empty")
        question = self._new_question(text, follow_up)
        self.under_way += 1
        self._stop.clear()
        opened = self._opened()
        try:
            async with self._machine:
                await self._offer(opened)
                async for event in sample(opened.engine, question, self.config.teach.max_answer_tokens, self._stop):
                    yield event
        except EngineEndedError as error:
            raise RefusedError(503, str(error)) from None
        except ValueError as error:
            raise RefusedError(400, str(error)) from None
        finally:
            self.under_way -= 1
        shown = [{"id": a.name, "text": a.text, "count": a.count} for a in question.answers.values()]
        yield "done", {"question": question.name, "answers": shown, "held_out": self._is_held_out(question.messages)}
        self._prepare(opened, question)

    def stop(self) -> None:
        """End the answers that are being written; what there is of them can be taught from."""
        self._stop.set()

    def _new_question(self, text: str, follow_up: bool) -> Question:
        earlier: list[dict[str, str]] = []
        if follow_up:
            earlier = conversation([*self.lessons.values()])
            if not earlier:
                raise RefusedError(409, "there is no answer to follow up: pick one first")
        self._asked += 1
        question = Question(f"{self.session[:4]}-{self._asked}", [*earlier, {"role": "user", "content": text}])
        self._questions[question.name] = question
        while len(self._questions) > QUESTIONS:
            self._questions.popitem(last=False)
        return question

    async def _offer(self, opened: _Open) -> None:
        """Let the engine have the day copy as it is now."""
        if opened.saved == opened.day:
            return
        taught = any(self.outcomes.get(name, Outcome()).learnt for name in self.lessons)
        folder = opened.folder / f"day-{opened.day}"
        if taught:
            await asyncio.to_thread(opened.learner.call, learner_process.save, folder)
        await opened.engine.use_adapter(folder if taught else None)
        opened.saved = opened.day
        for old in opened.folder.iterdir():
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)

    # -- teaching

    async def teach(self, kind: Kind, answer: str | None = None, text: str = "", from_char: int = -1) -> dict[str, Any]:
        """Write a lesson into the journal, let the day copy learn it, and return what became of it.

        Raises RefusedError; nothing was written then.
        """
        began = time.perf_counter()
        opened = self._opened()
        self.stop()
        name = secrets.token_hex(6)
        entries = self._entries(kind, answer, text, from_char, name, opened.champion.name)
        async with self._order:
            try:
                written = await asyncio.to_thread(write, self.home.journal, entries)
            except InputError as error:
                raise RefusedError(507, str(error)) from None
            lesson = Lesson(name, tuple(entries), written, self.live)
            self.lessons[name] = lesson
            saved = time.perf_counter() - began
            self.outcomes[name] = Outcome(why=self._why_not(lesson))
            self._publish()
            if not self.outcomes[name].why:
                await self._learn(opened, lesson)
        outcome = self.outcomes[name]
        self.on_lesson(opened.champion.name, self._figures(outcome))
        return {
            "lesson": name,
            **asdict(outcome),
            "saved_seconds": saved,
            "journal": f"{written.file}:{_line_number(written)}",
            "day": opened.day,
        }

    async def undo(self, name: str) -> dict[str, Any]:
        """Take a lesson back: out of the journal, and out of the day copy, as if it had never been taught.

        Raises RefusedError for one that there is not, or that a night has taken.
        """
        began = time.perf_counter()
        opened = self._opened()
        async with self._order:
            if (lesson := self.lessons.get(name)) is None:
                raise RefusedError(404, "there is no such lesson, or it was undone already")
            if night := await asyncio.to_thread(night_of, lesson.written, self.home.nights):
                raise RefusedError(409, f"the night of {night} took this lesson; `nightschool rollback` undoes nights")
            try:
                await asyncio.to_thread(retract, lesson.written)
            except InputError as error:
                raise RefusedError(507, str(error)) from None
            del self.lessons[name]
            async with self._machine:
                try:
                    forgotten = await asyncio.to_thread(opened.learner.call, learner_process.forget, name)
                    opened.day, again = forgotten
                    for later, learnt in again.items():
                        self._learnt(self.lessons[later], learnt, self.outcomes[later].seconds)
                except WorkerDiedError:
                    await asyncio.to_thread(self._again, opened)
                except WorkerEndedError:  # a night began; the journal is right
                    pass
            self.outcomes.pop(name, None)
            self.undone += 1
        self._publish()
        self._renew(opened)
        return {"lesson": name, "day": opened.day, "seconds": time.perf_counter() - began}

    async def _learn(self, opened: _Open, lesson: Lesson) -> None:
        async with self._machine:
            began = time.perf_counter()
            try:
                learnt = await asyncio.to_thread(
                    opened.learner.call, learner_process.learn, lesson.name, lesson.entries
                )
            except WorkerEndedError:  # a night began
                self.outcomes[lesson.name].why = self.why
                return
            except WorkerDiedError:
                await asyncio.to_thread(self._again, opened)
                return
            opened.day = self._learnt(lesson, learnt, time.perf_counter() - began)
        self._publish()
        self._renew(opened)

    def _again(self, opened: _Open) -> None:
        """Make the day copy anew after its process died."""
        known = anchors(self.home, opened.engine)
        opened.day = opened.learner.call(learner_process.start, opened.champion, self.config, known)
        for lesson in self.lessons.values():
            if not self._why_not(lesson):
                opened.day = self._learnt(
                    lesson, opened.learner.call(learner_process.learn, lesson.name, lesson.entries), None
                )

    def _learnt(self, lesson: Lesson, learnt: learner_process.Learnt, seconds: float | None) -> str:
        """Keep what became of a lesson; return the day copy's digest."""
        outcome = Outcome(learnt.learnt, learnt.change, learnt.kl, seconds, learnt.guessed, learnt.why, learnt.day_kl)
        self.outcomes[lesson.name] = outcome
        return learnt.day

    def _prepare(self, opened: _Open, question: Question) -> None:
        """Compute what a pick needs while the owner reads the answers, so that it need not wait for it."""

        async def prepare() -> None:
            if (pick := _pick(question)) is None or not self.live or self._is_held_out(question.messages):
                return
            more = True
            while more and question is next(reversed(self._questions.values())) and not self.under_way:
                async with self._machine:  # whoever waits for it comes first
                    more = await asyncio.to_thread(opened.learner.call, learner_process.prepare, pick)

        self._in_background(prepare())

    def _renew(self, opened: _Open) -> None:
        """Give the engine the new day copy while the owner reads, so that the next answer need not wait for it."""

        async def renew() -> None:
            async with self._machine:
                await self._offer(opened)

        self._in_background(renew())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what may fail: the next question or lesson tries again, and says what is wrong."""

        async def guarded() -> None:
            with contextlib.suppress(Exception):
                await work

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _why_not(self, lesson: Lesson) -> str:
        """Return why a lesson is not learnt by day; empty if it is."""
        if not lesson.live:
            return "only tonight"
        entry = lesson.entries[0]
        if self._is_held_out([message.model_dump() for message in getattr(entry, "messages", ())]):
            return "kept to judge: a part of your questions is never learnt, so that they can tell whether it helps"
        return ""

    def _is_held_out(self, messages: list[dict[str, str]]) -> bool:
        return bool(messages) and is_held_out(messages, self.config.unseen_share)

    def _entries(
        self, kind: Kind, answer: str | None, text: str, from_char: int, name: str, champion: str
    ) -> list[Entry]:
        """Return a lesson's lines. Raises RefusedError for one that says nothing."""
        keys: dict[str, Any] = {LESSON: name, LIVE: self.live, SESSION: self.session}
        try:
            if kind == "words":
                return [entry_of({"kind": "words", "text": text, **keys})]
            return entries_of(kind, *self._found(answer), champion, text, from_char, keys)
        except ValueError as error:
            raise RefusedError(400, str(error)) from None

    def _found(self, answer: str | None) -> tuple[Question, Shown]:
        for question in reversed(self._questions.values()):
            if answer in question.answers:
                return question, question.answers[answer]
        raise RefusedError(404, "there is no such answer; ask again")

    def _opened(self) -> _Open:
        if self._open is None:
            raise RefusedError(503, self.why)
        return self._open

    # -- what the page shows

    def state(self) -> dict[str, Any]:
        """Return what the status line and the list of lessons show."""
        opened = self._open
        lessons = []
        for lesson in reversed(self.lessons.values()):
            outcome = self.outcomes.get(lesson.name, Outcome(why=self._why_not(lesson)))
            about = {"id": lesson.name, "at": lesson.entries[0].at, "night": lesson.night, "live": lesson.live}
            lessons.append(about | {"what": told(lesson), **asdict(outcome)})
        return {
            "ready": opened is not None,
            "why": self.why,
            "live": self.live,
            "champion": opened.champion.name if opened else None,
            "day": opened.day if opened else None,
            "lessons": lessons,
            "guessed": self._guessed(),
            "blind": blind_test([*self.lessons.values()]),
            "day_kl": self._day_kl(),
            "day_kl_limit": self.config.teach.kl_of_day,
        }

    def taught_now(self) -> list[dict[str, Any]]:
        """Return this session's lessons as the state shows them, the latest first."""
        own = {name for name, lesson in self.lessons.items() if lesson.key(SESSION) == self.session}
        return [lesson for lesson in self.state()["lessons"] if lesson["id"] in own]

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the state, now and whenever it changes."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            yield self.state()
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)

    def set_live(self, live: bool) -> None:
        """Learn lessons at once from now on, or only by night."""
        self.live = live
        self._publish()

    def _publish(self) -> None:
        state = self.state() if self._watchers else {}
        for queue in self._watchers:
            queue.put_nowait(state)

    def _figures(self, outcome: Outcome) -> dict[str, float | None]:
        """Return a lesson's figures and those of the day so far."""
        guessed, blind = self._guessed(), blind_test([*self.lessons.values()])
        return {
            "change_nats": outcome.change_nats,
            "kl": outcome.kl,
            "day_kl": outcome.day_kl,
            "seconds": outcome.seconds,
            "learnt": float(outcome.learnt),
            "guessed_share": guessed["right"] / guessed["of"] if guessed["of"] else None,
            "blind_share": blind["day"] / blind["picks"] if blind["picks"] else None,
            "blind_chance": blind["chance"] / blind["picks"] if blind["picks"] else None,
            "undone": float(self.undone),
        }

    def _day_kl(self) -> float:
        """Return how far the day copy is from the champion, nats a token of everyday answers, after the last lesson."""
        known = [self.outcomes[name].day_kl for name in self.lessons if name in self.outcomes]
        return next((found for found in reversed(known) if found is not None), 0.0)

    def _guessed(self) -> dict[str, Any]:
        """Return how many of the last picks the day copy preferred itself, before it learnt them."""
        guesses = [
            (outcome.guessed, 1 / len(set(entry.responses)))
            for name, lesson in self.lessons.items()
            if (outcome := self.outcomes.get(name)) and outcome.guessed is not None
            if isinstance(entry := lesson.entries[0], Preference)
        ][-LAST:]
        right, chance = sum(guess for guess, _ in guesses), sum(chance for _, chance in guesses)
        return {"right": right, "of": len(guesses), "chance": round(chance, 1)}


def _pick(question: Question) -> Preference | None:
    """Return a pick of the first of a question's answers; None where there is nothing to choose from."""
    try:
        (entry,) = entries_of("pick", question, question.choices[0], "none", "", 0, {})
    except (ValueError, IndexError):
        return None
    assert isinstance(entry, Preference)
    return entry


def _line_number(written: Written) -> int:
    with written.file.open("rb") as file:
        return file.read(written.start).count(b"\n") + 1
