"""Five answers to a question: sampled from the day copy and, one of them, from the champion; equal ones shown once."""

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

QUESTIONS = 100  # whose answers can be taught from; the latest
SHOWN, DRAWN = 5, 10  # answers to a question: shown at most, and sampled at most to find so many different ones
DAY, CHAMPION = "day", "champion"  # who wrote an answer

Event = tuple[str, dict[str, Any]]


@dataclass
class Shown:
    """An answer on the page: as many samples agree on it as it has `policies`, those that wrote them."""

    name: str
    text: str
    policies: list[str]
    finished: bool = False
    corrected: str = ""  # what the owner wrote in its place

    @property
    def count(self) -> int:
        """The number of samples that agree on it."""
        return len(self.policies)


@dataclass
class Question:
    """A conversation up to an answer, and the answers to it; `merged`: the answer shown in place of an equal one.

    `judged`: the owner has said something of them. `unfinished`: answers of the conversation that were cut off.
    """

    name: str
    messages: list[dict[str, str]]
    answers: dict[str, Shown] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    judged: bool = False
    unfinished: tuple[str, ...] = ()

    @property
    def choices(self) -> list[Shown]:
        """The answers that say something."""
        return [answer for answer in self.answers.values() if answer.text.strip()]


class Questions:
    """The latest questions of a session, from whose answers a lesson can be taught."""

    def __init__(self, prefix: str) -> None:
        """`prefix`: of their names."""
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))
        self._questions: deque[Question] = deque(maxlen=QUESTIONS)

    @property
    def latest(self) -> Question | None:
        """The question that was asked last; None before the first."""
        return self._questions[-1] if self._questions else None

    def named(self, name: str) -> Question | None:
        """Return a question; None for one that is not among the latest."""
        return next((question for question in self._questions if question.name == name), None)

    def with_answer(self, name: str) -> tuple[Question, Shown] | None:
        """Return an answer with its question; None for one that is not among the latest."""
        for question in reversed(self._questions):
            if (shown := question.answers.get(question.merged.get(name, name))) is not None:
                return question, shown
        return None

    def add(self, messages: list[dict[str, str]], unfinished: tuple[str, ...]) -> Question:
        """Return a new question, without answers yet. The oldest one may go for it."""
        question = Question(next(self._names), messages, unfinished=unfinished)
        self._questions.append(question)
        return question


async def sample(engine: Engine, question: Question, max_tokens: int, stop: asyncio.Event) -> AsyncIterator[Event]:
    """Fill a question's answers, and yield their pieces as they are written, until all are or `stop` is set.

    Four samples come from the day copy and one from the champion, in random order. Equal ones are shown once, and
    others sampled instead. Raises ValueError and EngineEndedError as `Engine.write` does.
    """
    drawn = 0
    while drawn < DRAWN and (missing := SHOWN - len(question.answers)) and not stop.is_set():
        missing = min(missing, DRAWN - drawn)
        authors = [DAY] * missing if drawn else [CHAMPION, *[DAY] * (SHOWN - 1)]
        if not engine.has_adapter:  # nothing was learned: they are one
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
    """Add an answer to those shown, or count it with the one that says the same."""
    for other in question.answers.values():
        if _plain(other.text) == _plain(answer.text):
            other.policies += answer.policies
            other.finished = other.finished or answer.finished
            question.merged[answer.name] = other.name
            return
    question.answers[answer.name] = answer


def _plain(text: str) -> str:
    """Return a text without what no reader sees: form (NFKC), spaces, case."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()
