"""The day copy while the classroom is open: its learner's process, and the engine that answers with its adapter."""

import asyncio
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.journal import HELD_OUT, Entry, Preference
from flows.teaching.anchors import anchors
from flows.teaching.book import Book
from flows.teaching.engine import Engine
from models.engine.environment import trainer_environment
from models.lessons.outcome import LessonOutcome
from models.lessons.preference_data import is_held_out
from tasks.teaching import learner_process
from tasks.teaching.lessons import Lesson, lessons_without, why_only_tonight
from tasks.workers.worker import Worker, WorkerDiedError

P = ParamSpec("P")
R = TypeVar("R")
LOG = "teach.log"  # of engine and learner, under the home


class Day:
    """A day copy, made of the journal's lessons that the champion has not learned.

    Its methods block, except `offer`: the learner has one process. `digest`: the day copy's.
    """

    def __init__(self, home: Home, config: NightConfig, engine: Engine) -> None:
        """`engine`: one that holds the champion."""
        self.home, self.config, self.engine, self.champion = home, config, engine, engine.champion
        lessons = lessons_without(self.champion, home.journal)
        self.book = Book(OrderedDict((lesson.name, lesson) for lesson in lessons))
        self.digest = ""
        self._made = False  # whether the learner's process has learned all lessons
        self._learner = Worker("learner", trainer_environment(), home.root / LOG)
        self._folder = Path(tempfile.mkdtemp(prefix="nightschool-day-"))  # of the adapters
        self._offered = ""  # the digest of the adapter that the engine has

    def make(self, goes_on: Callable[[int], bool]) -> bool:
        """Learn all lessons anew; return whether all were. `goes_on`: of a lesson's number, whether to learn it too."""
        known, self._made = anchors(self.home, self.engine), False
        self.digest = self._call(learner_process.start, self.champion, self.config, known)
        for number, lesson in enumerate(self.book.lessons.values(), 1):
            if not goes_on(number):
                return False
            self._learn(lesson, timed=False)
        self._made = True
        return True

    def is_held_out(self, messages: Sequence[dict[str, str]]) -> bool:
        """Return whether a conversation is kept to judge."""
        return bool(messages) and is_held_out(messages, self.config.unseen_share)

    def marked(self, entry: Entry) -> Entry:
        """Return a line that says whether its conversation is kept to judge, so that every night agrees."""
        messages = [message.model_dump() for message in getattr(entry, "messages", ())]
        return entry.model_copy(update={HELD_OUT: self.is_held_out(messages)}) if messages else entry

    def learn(self, lesson: Lesson) -> None:
        """Learn a lesson, which is the book's last, and write its outcome there.

        A learner that dies is started again. Raises WorkerEndedError if the day has ended meanwhile, WorkerDiedError
        if the learner dies again.
        """
        if self._made:
            with suppress(WorkerDiedError):
                self._learn(lesson, timed=True)
        self._make_if_lost()

    def _learn(self, lesson: Lesson, *, timed: bool) -> None:
        if why := why_only_tonight(lesson, self.config.unseen_share):
            self.book.outcomes[lesson.name] = LessonOutcome(why=why)
            return
        began = time.perf_counter()
        outcome, self.digest = self._call(learner_process.learn, lesson.name, lesson.entries)
        seconds = time.perf_counter() - began if timed else None
        self.book.outcomes[lesson.name] = replace(outcome, seconds=seconds)

    def forget(self, name: str) -> None:
        """Undo a lesson, which the book does not have any more. Raises as `learn` does."""
        if self._made:
            with suppress(WorkerDiedError):
                again, self.digest = self._call(learner_process.forget, name)
                for later, outcome in again.items():
                    self.book.outcomes[later] = replace(outcome, seconds=self.book.outcomes[later].seconds)
        self._make_if_lost()

    def prepare(self, pick: Preference) -> bool:
        """Compute a part of what a pick needs before it is made, as `DayCopy.prepare`. Raises as `learn` does."""
        self._make_if_lost()
        return self._call(learner_process.prepare, pick)

    def save(self) -> Path | None:
        """Write the adapter, and return its folder; None if nothing was learned, so that there is none."""
        if not self.book.has_learned:
            return None
        self._make_if_lost()
        folder = self._folder / f"day-{self.digest}"
        self._call(learner_process.save, folder)
        for old in self._folder.iterdir():
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return folder

    async def offer(self) -> None:
        """Let the engine answer with the day copy as it is now."""
        if self._offered != self.digest:
            digest, adapter = self.digest, await asyncio.to_thread(self.save)
            await self.engine.use_adapter(adapter)
            self._offered = digest

    def _make_if_lost(self) -> None:
        if not self._made:
            self.make(lambda _: True)

    def _call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self._learner.call(function, *args, **kwargs)
        except WorkerDiedError:
            self._made = False
            raise

    def end(self) -> None:
        """End the learner. Lessons stay in the journal."""
        self._learner.end()
        shutil.rmtree(self._folder, ignore_errors=True)
