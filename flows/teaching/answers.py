"""Sample five answers to a question, four from the day copy and one from the champion, and merge duplicates."""

import asyncio
import contextlib
import itertools
import random
import unicodedata
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from flows.teaching.engine import Engine

QUESTIONS = 100  # the number of latest questions that are kept, so that the owner can still teach from their answers
SHOWN, DRAWN = 5, 10  # maxima per question: answers shown, and answers sampled to find enough distinct ones to show
DAY, CHAMPION = "day", "champion"  # the possible authors of an answer

Event = tuple[str, dict[str, Any]]


@dataclass
class Shown:
    """An answer on the page. `policies`: the author (DAY or CHAMPION) of each sample that gave this answer."""

    name: str
    text: str
    policies: list[str]
    finished: bool = False
    corrected: str = ""  # the owner's correction, if any

    @property
    def count(self) -> int:
        """The number of samples that gave this answer."""
        return len(self.policies)


@dataclass
class Question:
    """A question, the conversation before it, and its answers. `merged` maps duplicates' names to shown answers' names.

    `judged`: whether the owner has judged any answer. `unfinished`: the earlier answers that were cut off.
    """

    name: str
    messages: list[dict[str, str]]
    answers: dict[str, Shown] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    judged: bool = False
    unfinished: tuple[str, ...] = ()

    @property
    def choices(self) -> list[Shown]:
        """The answers that are not blank."""
        return [answer for answer in self.answers.values() if answer.text.strip()]


class Questions:
    """The latest questions of a session, kept so that the owner can still teach from their answers."""

    def __init__(self, prefix: str) -> None:
        """`prefix`: the start of each question's name."""
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))
        self._questions: deque[Question] = deque(maxlen=QUESTIONS)

    @property
    def latest(self) -> Question | None:
        """The question asked last, or None before the first."""
        return self._questions[-1] if self._questions else None

    def named(self, name: str) -> Question | None:
        """Return the question with this name, or None if it is not among the latest."""
        return next((question for question in self._questions if question.name == name), None)

    def with_answer(self, name: str) -> tuple[Question, Shown] | None:
        """Find an answer by its name. Return its question and the answer, or None if no recent question has it."""
        for question in reversed(self._questions):
            if (shown := question.answers.get(question.merged.get(name, name))) is not None:
                return question, shown
        return None

    def add(self, messages: list[dict[str, str]], unfinished: tuple[str, ...]) -> Question:
        """Add a question that has no answers yet, and return it. Only the latest QUESTIONS questions are kept."""
        question = Question(next(self._names), messages, unfinished=unfinished)
        self._questions.append(question)
        return question


async def sample(engine: Engine, question: Question, max_tokens: int, stop: asyncio.Event) -> AsyncIterator[Event]:
    """Sample answers to a question, and yield them in pieces as they are written, until all are done or `stop` is set.

    Four samples come from the day copy and one from the champion, in random order. Duplicates are merged, and
    replaced by more samples of the day copy. Raises ValueError and EngineEndedError as `Engine.write` does.
    """
    drawn = 0
    while drawn < DRAWN and (missing := SHOWN - len(question.answers)) and not stop.is_set():
        missing = min(missing, DRAWN - drawn)
        authors = [DAY] * missing if drawn else [CHAMPION, *[DAY] * (SHOWN - 1)]
        if not engine.has_adapter:  # nothing learned yet: the day copy is the champion
            authors = [CHAMPION] * len(authors)
        random.shuffle(authors)
        slots = [Shown(f"{question.name}-{drawn + i + 1}", "", [author]) for i, author in enumerate(authors)]
        by_day_copy = [author == DAY for author in authors]
        async with contextlib.aclosing(engine.write(question.messages, by_day_copy, max_tokens, stop)) as pieces:
            async for piece in pieces:
                if isinstance(piece, tuple):
                    number, text = piece
                    slots[number].text += text
                    yield "answer", {"answer": slots[number].name, "delta": text}
                else:
                    for slot, answer in zip(slots, piece, strict=True):
                        slot.text, slot.finished = answer.text, answer.finished
        drawn += len(slots)
        for slot in slots:
            _merge(question, slot)


def _merge(question: Question, answer: Shown) -> None:
    """Add an answer to the answers shown, or merge it into an equal answer that is already there."""
    for other in question.answers.values():
        if _plain(other.text) == _plain(answer.text):
            other.policies += answer.policies
            other.finished = other.finished or answer.finished
            question.merged[answer.name] = other.name
            return
    question.answers[answer.name] = answer


def _plain(text: str) -> str:
    """Remove the differences that do not matter to a reader: Unicode form (NFKC), whitespace and case."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()
