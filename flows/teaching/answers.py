"""Samples answers to a question: one, or five different ones, of which the champion writes one."""

import contextlib
import itertools
import random
import secrets
import unicodedata
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conf.storage.home import InputError
from conf.storage.journal import CONVERSATION, Correction, Preference
from flows.teaching.engine import Engine
from flows.teaching.markdown import as_html
from tasks.journal import conversations
from tasks.teaching.lessons import Lesson

QUESTIONS = 100  # how many of the latest questions are kept, so that the owner can still teach from their answers
SHOWN, DRAWN = 5, 10  # per question: the most answers shown, and the most sampled to find that many different ones
TEMPERATURE = 0.8  # for people: at 1, a small model's answers are often gibberish
DAY, CHAMPION = "day", "champion"  # the possible authors of an answer
PICKS = ("pick", "none")  # the kinds of lessons that choose among a question's answers

Event = tuple[str, dict[str, Any]]


class RefusedError(Exception):
    """The classroom refused a request. The message is a one-line reason. `status`: the HTTP status code."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Shown:
    """An answer on the page. `policies`: the author (DAY or CHAMPION) of each sample that gave this answer.

    `text`: as the model wrote it. `corrections`: the owner's corrections, by their lessons.
    """

    name: str
    text: str
    policies: list[str]
    finished: bool = False
    corrections: dict[str, str] = field(default_factory=dict)

    @property
    def better(self) -> str:
        """The owner's last correction or, without one, the model's text."""
        return [self.text, *self.corrections.values()][-1]

    @property
    def shown(self) -> dict[str, Any]:
        """The answer as the page shows it. `count`: the number of samples that gave it."""
        found = {"id": self.name, "text": self.better, "html": as_html(self.better)}
        return found | {"finished": self.finished or bool(self.corrections), "count": len(self.policies)}


@dataclass
class Question:
    """A question, the conversation before it, and its answers by name.

    `messages`: the conversation, which ends with the question. `merged`: from each duplicate's name to the name of the
    answer that is shown for it. `judged`: whether the owner has judged any answer. `unfinished`: the texts of answers
    before the question that were stopped or cut off. `conversation`: the name of the chat that it belongs to, or empty.
    `turn`: which of the chat's answers it asks for, from 1. `behind`: whether a lesson was still being learned.
    `held_out`: whether its conversation is held out for evaluation. `pick`: the last pick's kind (see PICKS),
    answer and lesson, all empty before the first.
    """

    name: str
    messages: list[dict[str, str]]
    answers: dict[str, Shown] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    judged: bool = False
    unfinished: tuple[str, ...] = ()
    conversation: str = ""
    turn: int = 0
    behind: bool = False
    held_out: bool = False
    pick: tuple[str, str, str] = ("", "", "")

    @property
    def choices(self) -> list[Shown]:
        """The answers that are not blank."""
        return [answer for answer in self.answers.values() if answer.text.strip()]

    def replaced_by(self, kind: str, answer: Shown, lessons: Collection[str]) -> str:
        """Return the name of the earlier pick that a lesson about an answer replaces, or an empty string.

        `lessons`: those that were not undone. Raises RefusedError if that pick said the same.
        """
        before, answer_before, lesson = self.pick
        if kind not in PICKS or lesson not in lessons:
            return ""
        if kind == before and (kind == "none" or answer.name == answer_before):
            raise RefusedError(409, "you have said so already: see the list of lessons")
        return lesson

    def note(self, kind: str, answer: Shown, text: str, lesson: str, journal: Path) -> None:
        """Remember a lesson about one of the answers. A chat goes on from the better answer. `text`: a correction."""
        self.judged = True
        if kind == "correct":
            answer.corrections[lesson] = text
        if kind in PICKS:
            self.pick = kind, answer.name, lesson
        if self.conversation and kind in ("pick", "correct"):
            with contextlib.suppress(InputError):  # the lesson is there, whatever becomes of the conversation
                finished = answer.finished or bool(answer.corrections)
                conversations.replace_answer(journal, self.conversation, self.turn, answer.better, finished)

    def keep(self, number: int) -> Shown:
        """Keep only one of the answers that are not blank, by its number from 0, or the first if all are. Return it."""
        kept = [*self.choices, *self.answers.values()][number]
        kept.name = f"{self.name}-1"
        self.answers, self.merged = {kept.name: kept}, {}
        return kept

    @property
    def authors(self) -> dict[str, list[str]]:
        """Who wrote each answer, by its name; a recorded answer, of which that is not known, is left out."""
        return {answer.name: answer.policies for answer in self.choices if answer.policies}

    def described(self) -> dict[str, Any]:
        """Return the question and its answers as the page shows them. Nothing tells which model wrote an answer."""
        answers, earlier = [answer.shown for answer in self.answers.values()], self.messages[:-1]
        said = {"question": self.name, "held_out": self.held_out, "behind": self.behind}
        return said | {"answers": answers, "earlier": earlier}


Sampling = Callable[[Engine, Question], AsyncIterator[Event]]  # writes a question's answers, such as `sample`


class Questions:
    """The latest questions of a session, kept so that the owner can still teach from their answers."""

    def __init__(self, journal: Path) -> None:
        self.journal, prefix = journal, secrets.token_hex(2)
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))
        self._questions: deque[Question] = deque(maxlen=QUESTIONS)

    @property
    def latest(self) -> Question | None:
        """The question asked last, or None before the first."""
        return self._questions[-1] if self._questions else None

    def like(self, name: str) -> Question | None:
        """Return a question without answers and name, to ask again one of the latest or of a recorded conversation."""
        same = self.with_answer(f"{name}-1") or recorded_answer(self.journal, f"{name}-1")
        return replace(same[0], name="", answers={}, merged={}, judged=False, pick=("", "", "")) if same else None

    def with_answer(self, name: str) -> tuple[Question, Shown] | None:
        """Return (question, answer) for an answer's name, or None. For a merged answer, return the equal one shown."""
        for question in reversed(self._questions):
            if (shown := question.answers.get(question.merged.get(name, name))) is not None:
                return question, shown
        return None

    def named(self, name: str) -> tuple[Question, Shown]:
        """Return an answer and its question. Raises RefusedError if there is no such answer.

        In a chat, the recorded answer counts: another one may have been picked in its place.
        """
        found, recorded = self.with_answer(name), recorded_answer(self.journal, name)
        if recorded and (found is None or recorded[1].text != found[1].better):
            return recorded
        if found is None:
            raise RefusedError(404, "there is no such answer; ask again")
        return found

    def restore(self, lesson: Lesson) -> None:
        """Put back what a correction, or a pick in a chat, has replaced."""
        for question in self._questions:
            for answer in question.answers.values():
                answer.corrections.pop(lesson.name, None)
        entry, chat = lesson.entries[0], lesson.key(CONVERSATION)
        if chat and isinstance(entry, Correction | Preference):
            better = entry.correction if isinstance(entry, Correction) else entry.responses[entry.chosen]
            with contextlib.suppress(InputError):  # the lesson is undone, whatever becomes of the conversation
                conversations.restore_answer(self.journal, chat, entry.messages[-1].content, better)

    def add(self, question: Question) -> Question:
        """Add a question that has no answers yet; give it a name if it has none. Only the latest QUESTIONS are kept."""
        question.name = question.name or next(self._names)
        self._questions.append(question)
        return question


async def sample(engine: Engine, question: Question) -> AsyncIterator[Event]:
    """Sample five answers to a question. Yield each piece as it is written, until all are done or `engine.stop` is set.

    First, the day copy writes four answers and the champion one, in random order. Duplicates are merged, and the day
    copy writes more answers in their place. Raises ValueError and WorkerEndedError as `Engine.write` does.
    """
    authors = [CHAMPION, *[DAY] * (SHOWN - 1)]
    while authors and not engine.stop.is_set():
        random.shuffle(authors)
        async for event in _write(engine, question, authors):
            yield event
        drawn = len(question.answers) + len(question.merged)
        authors = [DAY] * min(SHOWN - len(question.answers), DRAWN - drawn)


def sample_one(engine: Engine, question: Question, count: int = 1) -> AsyncIterator[Event]:
    """Sample one answer, or `count`, written by the day copy. Yields and raises as `sample` does."""
    return _write(engine, question, [DAY] * count)


async def sample_rest(shown: Shown, engine: Engine, question: Question) -> AsyncIterator[Event]:
    """Sample the rest of an unfinished answer, written by the day copy. Yields and raises as `sample` does."""
    writing = engine.write(question.messages, [engine.has_adapter], TEMPERATURE, shown.text)
    begun = shown.text
    async with contextlib.aclosing(writing) as pieces:
        async for piece in pieces:
            if isinstance(piece, tuple):
                yield "answer", {"answer": shown.name, "delta": piece[1]}
            else:
                shown.text, shown.finished = begun + piece[0].text, piece[0].finished


async def sample_what_fits(sampling: Sampling, engine: Engine, question: Question) -> AsyncIterator[Event]:
    """Sample as `sampling` does. A conversation too long for the model loses its oldest exchanges but the first."""
    whole, first = question.messages, int(question.messages[0]["role"] == "system")
    while True:
        try:
            async for event in sampling(engine, question):
                yield event
            return
        except ValueError:
            if len(question.messages) < first + 5:  # the first exchange says whether the conversation is held out
                question.messages = whole
                raise
            question.messages = [*question.messages[: first + 2], *question.messages[first + 4 :]]


def sample_both(engine: Engine, question: Question) -> AsyncIterator[Event]:
    """Write the greedy answers of the champion and of the day copy, in this order; just one if they are the same."""
    authors = [CHAMPION, DAY] if engine.has_adapter else [CHAMPION]
    return _write(engine, question, authors, temperature=0.0)


def recorded_answer(journal: Path, name: str) -> tuple[Question, Shown] | None:
    """Return a recorded conversation's answer with its question, or None if there is no such answer.

    The name is that of the conversation, the number of the answer in it, and which of the answers shown it was.
    """
    conversation, turn, number = [*name.rsplit("-", 2), "", ""][:3]
    found = conversations.conversation(journal, conversation) if turn.isdecimal() and number == "1" else None
    end = conversations.answer_index(found.turns, int(turn)) if found else None
    if found is None or end is None:
        return None
    text = found.turns[end]["content"]
    shown = Shown(name, text, [], finished=text not in found.unfinished)
    before = {"unfinished": found.unfinished, "conversation": conversation, "turn": int(turn)}
    return Question(f"{conversation}-{turn}", found.turns[:end], {name: shown}, **before), shown


async def _write(
    engine: Engine, question: Question, authors: Sequence[str], temperature: float = TEMPERATURE
) -> AsyncIterator[Event]:
    """Write one answer per author, and merge them into the question's answers."""
    if not engine.has_adapter:  # the day copy has learned nothing yet, so it equals the champion
        authors = [CHAMPION] * len(authors)
    first = len(question.answers) + len(question.merged) + 1
    slots = [Shown(f"{question.name}-{number}", "", [author]) for number, author in enumerate(authors, first)]
    writing = engine.write(question.messages, [author == DAY for author in authors], temperature)
    async with contextlib.aclosing(writing) as pieces:
        async for piece in pieces:
            if isinstance(piece, tuple):
                number, text = piece
                yield "answer", {"answer": slots[number].name, "delta": text}
            else:
                for slot, answer in zip(slots, piece, strict=True):
                    slot.text, slot.finished = answer.text, answer.finished
    for slot in slots:
        _merge(question, slot)


def _merge(question: Question, answer: Shown) -> None:
    """Add an answer to the question's answers, or merge it into an equal answer that is already among them."""
    for other in question.answers.values():
        if _plain(other.text) == _plain(answer.text):
            other.policies += answer.policies
            other.finished = other.finished or answer.finished
            question.merged[answer.name] = other.name
            return
    question.answers[answer.name] = answer


def _plain(text: str) -> str:
    """Return a text without differences that do not matter to a reader: Unicode form (NFKC), whitespace and case."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()
