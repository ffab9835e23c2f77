"""Manages the day copy while the classroom is open: a learner process trains it, and the engine answers with it."""

import asyncio
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from conf.schema import NightConfig
from conf.storage.durable import make_folder
from conf.storage.home import Home
from conf.storage.journal import HELD_OUT, LESSON, Correction, Entry, Preference
from flows.teaching import saved_day
from flows.teaching.book import Book
from flows.teaching.engine import Engine
from models.engine.environment import trainer_environment
from models.hf.checkpoint import learned
from models.lessons.outcome import LessonOutcome
from models.lessons.preference_data import is_held_out, opening
from tasks.journal.held_out import decided
from tasks.journal.read import valid_lines
from tasks.teaching import learner_process
from tasks.teaching.lessons import Lesson, lessons_without, why_only_tonight
from tasks.workers.worker import P, R, Worker, WorkerDiedError, WorkerEndedError

FIRST = 20  # lessons before conversations are held out, so that a new owner sees each of them teach
CHOICES = 5  # picks and corrections before a chat's answer is chosen from several
FOLDER = Path("teaching", "day")  # of the saved adapters, under the home
MOST_ENDS = 6  # of the learner's process while it learns again
LOG = "teach.log"  # the log of the engine and the learner, under the home


class Day:
    """A day copy, built from those of the journal's lessons that the champion has not learned yet.

    `run` runs the other methods, which block while the learner's process works, in the order of the calls.
    `digest`: the digest of the day copy's adapter. `offered`: that of the adapter that answers, perhaps an earlier one.
    """

    def __init__(self, home: Home, config: NightConfig, champion: Path, engine: Engine | None = None) -> None:
        """`engine`: an engine that holds the champion, and to which the day copy is offered."""
        self.home, self.config, self.champion, self.engine = home, config, champion, engine
        lessons, lines = lessons_without(self.champion, home.journal), valid_lines(home.journal)
        self.book = Book({lesson.name: lesson for lesson in lessons})
        taught = {line.entry.extra(LESSON) for line in lines} - {None}
        self._taught_before = len(taught) - len(lessons)  # lessons that the champion has learned
        # whether each conversation so far is held out, by its opening
        self._held_out = decided(lines, learned(champion), config.unseen_share)
        self.digest = ""
        self._made = False  # whether the learner's process holds all lessons
        # One thread of its own: a paused learner must not hold up the threads that the engine's answers need.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="day")
        self._learner = Worker("learner", trainer_environment(), home.root / LOG)
        self._held: dict[str, Lesson] = {}  # the lessons that the learner's process holds, by name
        self._ended_by: Counter[str] = Counter()  # how often each lesson ended the learner's process
        self._folder = home.root / FOLDER
        self._offering = asyncio.Lock()
        self.offered = ""

    def make(self, goes_on: Callable[[int], bool]) -> bool:
        """Load the day copy that was saved last, if it still fits the journal, and learn all lessons after it.

        If `goes_on(n)` is false before lesson n (from 1), stop and return False. A lesson that ends the learner's
        process twice is left to the night, and the rest is learned without it. Raises WorkerDiedError if the process
        ends otherwise, or again and again.
        """
        while True:
            known = self._ended_by.total()
            try:
                return self._make(goes_on)
            except WorkerDiedError:
                if self._ended_by.total() in (known, MOST_ENDS):
                    raise

    def _make(self, goes_on: Callable[[int], bool]) -> bool:
        self._made, lessons = False, [*self.book.lessons.values()]
        adapter, outcomes = saved_day.find(self._folder.glob("*"), self.champion, self.config, lessons)
        tried = [(each.name, each.entries) for each, how in zip(lessons, outcomes, strict=False) if how.kl is not None]
        self.digest, found = self._call(learner_process.start, self.champion, self.config, adapter, tried)
        done = len(outcomes) if found else 0
        self._held = {lesson.name: lesson for lesson in lessons[:done]}
        self.book.outcomes.update(zip(self._held, outcomes, strict=False))
        for number, lesson in enumerate(lessons[done:], done + 1):
            if not goes_on(number):
                return False
            try:
                self._learn(lesson)
            except WorkerDiedError:
                self._ended_by[lesson.name] += 1
                raise
        self._made = True
        return True

    def is_held_out(self, messages: Sequence[dict[str, str]]) -> bool:
        """Return whether a conversation is held out for evaluation: as its opening was at first, so that nights agree.

        Until `FIRST` lessons were taught, no new one is.
        """
        held_out = self._taught_before + len(self.book.lessons) >= FIRST
        held_out = held_out and is_held_out(messages, self.config.unseen_share)
        return self._held_out.setdefault(opening(messages), held_out)

    def marked(self, entry: Entry) -> Entry:
        """Return a copy of an entry, marked as held out for evaluation or not, so that all nights treat it alike."""
        return entry.model_copy(update={HELD_OUT: self.is_held_out(entry.turns)}) if entry.turns else entry

    def learn(self, lesson: Lesson, began: float) -> None:
        """Have the day copy learn a lesson of the book, taught at `began` (`time.perf_counter`); record the outcome.

        Nothing happens if the lesson was undone meanwhile, or if the learner, restarted meanwhile, has learned it.
        If the learner's process dies, it is restarted and learns all lessons again, as `make` does. Raises as that
        does, and WorkerEndedError if `end` is called meanwhile.
        """
        if self._made and lesson.name in self.book.lessons.keys() - self._held.keys():
            with suppress(WorkerDiedError):
                self._learn(lesson, began)
        self._make_if_lost()

    def _learn(self, lesson: Lesson, began: float | None = None) -> None:
        self._held[lesson.name] = lesson
        why = why_only_tonight(lesson, self.config.unseen_share)
        if self._ended_by[lesson.name] > 1:
            why = "it ended the learner's process, see teach.log; the night may still learn it"
        if why:
            self.book.outcomes[lesson.name] = LessonOutcome(why=why)
            return
        outcome, self.digest = self._call(learner_process.learn, lesson.name, lesson.entries)
        seconds = None if began is None else time.perf_counter() - began
        self.book.outcomes[lesson.name] = replace(outcome, seconds=seconds)

    def forget(self, name: str) -> None:
        """Have the day copy forget a lesson that was removed from the book. Raises the same errors as `learn`."""
        if self._made:
            with suppress(WorkerDiedError):
                again, self.digest = self._call(learner_process.forget, name)
                self._held.pop(name, None)
                for later, outcome in again.items():
                    if earlier := self.book.outcomes.get(later):  # else it was undone meanwhile
                        self.book.outcomes[later] = replace(outcome, seconds=earlier.seconds)
        self._make_if_lost()

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]:
        """Run a function that uses the learner, after all for which this was called before.

        Raises WorkerEndedError after `end`.
        """
        try:
            return asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *args, **kwargs))
        except RuntimeError as error:  # the thread takes no more work
            raise WorkerEndedError(str(error)) from None

    def prepare(self, pick: Preference, wanted: Callable[[], bool]) -> None:
        """Compute what any pick among these answers needs first, if it is still `wanted`. Raises as `learn` does."""
        if wanted():
            self.ask(learner_process.prepare, pick)

    @property
    def best_of(self) -> int:
        """How many answers to choose from in a chat: one until the lessons tell enough about the owner's choices."""
        learned = {name for name, outcome in self.book.outcomes.items() if outcome.kl is not None}
        entries = [lesson.entries[0] for name, lesson in self.book.lessons.items() if name in learned]
        chose = sum(isinstance(entry, Preference | Correction) for entry in entries)
        return self.config.teach.best_of if chose >= CHOICES else 1

    def ask(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function of `learner_process` once the process holds all lessons. Raises as `learn` does."""
        self._make_if_lost()
        return self._call(function, *args, **kwargs)

    def pause(self, paused: bool = True) -> None:
        """Stop the learner in the middle of its work, so that the engine has the machine, or let it go on."""
        self._learner.pause(paused)

    async def offer(self) -> None:
        """Load the current day copy into the engine, unless the engine already has it."""
        async with self._offering:
            if self.engine is None or self.offered == self.digest:
                return
            adapter, digest = None, self.digest
            if self.book.has_learned:
                adapter, digest = await self.run(self._save)
            await self.engine.use_adapter(adapter)
            self.offered = digest
            for old in self._folder.glob("*"):
                if old != adapter:
                    shutil.rmtree(old, ignore_errors=True)

    def _save(self) -> tuple[Path, str]:
        """Write the adapter, and return its folder and digest."""
        self._make_if_lost()
        make_folder(self._folder, 0o700)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        digest = self._call(learner_process.save, folder)
        outcomes = self.book.outcomes
        if self._held.keys() <= outcomes.keys():  # otherwise, one is just being undone
            taught = [(lesson, outcomes[name]) for name, lesson in self._held.items()]
            saved_day.write(folder, self.champion, self.config, taught)
        return folder, digest

    def _make_if_lost(self) -> None:
        if not self._made:
            self.make(lambda _: True)

    def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self._made and self._learner.lost:
                raise WorkerDiedError("the learner died while it had nothing to learn")
            return self._learner.call(function, *args, **kwargs)
        except WorkerDiedError:
            self._made = False
            raise

    def end(self) -> None:
        """Stop the learner's process. The lessons stay in the journal."""
        self._learner.end()
        self._thread.shutdown(wait=False)


def saved(home: Home, config: NightConfig, champion: Path) -> tuple[Path | None, int]:
    """Return the saved day copy's adapter, or None, and how many later lessons it has not learned.

    Lessons for the night alone do not count. It may have learned with other settings than `config`.
    """
    lessons = lessons_without(champion, home.journal)
    adapter, outcomes = saved_day.find((home.root / FOLDER).glob("*"), champion, None, lessons)
    later = lessons[len(outcomes) :]
    return adapter, sum(not why_only_tonight(lesson, config.unseen_share) for lesson in later)
