"""Chats with the day copy: one answer at a time, recorded in the journal before the owner can act on it."""

import asyncio
import contextlib
import difflib
import re
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from conf.storage.journal import HELD_OUT, SESSION, TODAY
from flows.teaching.answers import Event, Question, RefusedError, sample_both, sample_one, sample_rest
from flows.teaching.classroom import Classroom
from flows.teaching.day import Day
from flows.teaching.engine import Engine
from flows.teaching.entries import any_pick
from flows.teaching.markdown import as_html
from tasks.journal import conversations
from tasks.journal.conversations import Record
from tasks.teaching import learner_process
from tasks.workers.worker import WorkerDiedError, WorkerEndedError

TITLE = 60  # the most characters of a conversation's title, which is its first question
ALIKE = 0.6  # share of words that a reply has in common with the answer if it repeats it with a change
OPENING = re.compile(
    r"(?:no|nope|wrong|incorrect|not quite|actually|sorry|i meant|that(?:'s| is| was) (?:wrong|not \w+))\b[\W_]*", re.I
)
# A wish about the last answer. Even the starter fulfils most of them better than by chance: benchmarks.hindsight.
WISH = re.compile(
    r"(?:please[,:]? )?(?:(?:(?:much|a bit|a little|even) )?(?:shorter|longer|briefer|simpler|clearer|nicer|friendlier)"
    r"|in (?:one|two|three|fewer|simpler?|plain|other) (?:sentences?|words?|lines?|terms|language|english)"
    r"|(?:end|begin|start) with|rephrase|rewrite"
    r"|summari[sz]e|more (?:detail|formal|polite|friendly)|less (?:detail|formal))\b",
    re.I,
)
WISH_WORDS = 8  # the most in a wish
POLITE = ("thank", "problem", "worries", "need")  # "no, thanks" corrects nothing


class Chats:
    """The conversations of a classroom. A conversation that `nightschool serve` recorded goes on here, too."""

    def __init__(self, room: Classroom) -> None:
        self.room, self.journal = room, room.home.journal

    async def say(self, text: str, name: str = "") -> AsyncIterator[Event]:
        """Yield the day copy's answer in pieces, and finally a `done` event.

        `name`: the conversation that the text continues, or empty for a new one. If the text seems to correct the
        answer before it, or to wish for another one, `done` has a `proposal`: that answer's id, and the better text,
        which is the new answer to a wish (hindsight, arXiv 2603.12273). If the reader leaves before the end, what was
        written so far is recorded. Raises InputError if the journal cannot be written, and RefusedError if there is no
        such conversation, or as `Classroom.ask` does.
        """
        room, earlier = self.room, self.room.questions.latest
        day, known = room.ready_for(text), self._named(name) if name else None
        turns = known.turns if known else []
        given, name, turn = name, name or secrets.token_hex(6), 1 + sum(turn["role"] == "assistant" for turn in turns)
        messages, cut = [*turns, {"role": "user", "content": text}], known.unfinished if known else ()
        question = room.questions.add(
            Question(f"{name}-{turn}", [*messages], unfinished=cut, conversation=name, turn=turn)
        )
        record, written = partial(self._record, question, day, known is None), ""
        sampling = partial(self._best_of, day, day.best_of) if day.best_of > 1 else sample_one
        try:
            async for event in room.answers(day, question, sampling):
                written += event[1]["delta"]
                yield event
        except (asyncio.CancelledError, GeneratorExit):  # the browser was closed, or has lost its connection
            record(written, finished=False)
            raise
        (answer,) = question.answers.values()
        await asyncio.to_thread(record, answer.text, answer.finished)
        recorded = name if answer.text.strip() else given
        said: dict[str, Any] = {"conversation": recorded, "turn": turn, "question": question.name}
        said |= {"answer": answer.shown, "held_out": question.held_out, "behind": question.behind}
        better = corrected(turns[-1]["content"], text) if turns else None
        if turns and not better and answer.finished and grants(text, turns[-1]["content"], answer.text):
            better = answer.text.strip()
        if better and better != turns[-1]["content"].strip():
            said["proposal"] = {"answer": f"{name}-{turn - 1}-1", "text": better}
        yield "done", said
        room.notice(earlier, question)

    async def go_on(self, answer: str) -> AsyncIterator[Event]:
        """Yield the rest of an answer that was stopped or cut off, and finally `done` with the whole answer.

        Raises RefusedError if there is no such answer in a chat, and otherwise as `say` does.
        """
        room = self.room
        question, shown = room.questions.named(answer)
        if shown.finished or not question.conversation:
            raise RefusedError(409, "this answer is complete")
        async for event in room.answers(room.ready_for(shown.text), question, partial(sample_rest, shown)):
            yield event
        about = question.conversation, question.turn, shown.text, shown.finished
        await asyncio.to_thread(conversations.replace_answer, self.journal, *about)
        yield "done", {"answer": shown.shown}

    def listed(self) -> list[dict[str, str]]:
        """Return the conversations, latest first."""
        return [
            {"id": found.name, "at": found.at, "title": found.turns[0]["content"][:TITLE]}
            for found in conversations.conversations(self.journal)
        ]

    def shown(self, name: str) -> dict[str, Any]:
        """Return a conversation's turns, with the answers' ids, and the checkpoints that have learned from it."""
        found, turns, count = self._named(name), list[dict[str, Any]](), 0
        for turn in found.turns:
            turns.append(said := {"role": turn["role"], "text": turn["content"]})
            if turn["role"] == "assistant":
                count += 1
                finished = turn["content"] not in found.unfinished
                said |= {"id": f"{name}-{count}-1", "html": as_html(turn["content"]), "finished": finished}
        return {"id": name, "at": found.at, "turns": turns, "learned_by": self._learned_by(name)}

    async def forget(self, name: str) -> dict[str, Any]:
        """Delete a conversation and undo its lessons. Checkpoints that have learned from it are named and kept."""
        self.room.opened()  # during a night, the journal must stay as it is
        self._named(name)
        learned_by = await asyncio.to_thread(self._learned_by, name)
        for each in conversations.with_beginnings(self.journal, name):
            for lesson in reversed(self.room.book.about(each)):  # the newest first, so none is learned again
                await self.room.undo(lesson)
        lines = await asyncio.to_thread(conversations.forget, self.journal, name)
        return {"lines": lines, "learned_by": learned_by}

    async def compare(self, text: str, again: str = "") -> dict[str, str]:
        """Return the greedy answers of the champion and of today's copy to a text.

        `again`: the name of an earlier question, which is asked instead, with the conversation before it.
        """
        room = self.room
        day, asked = room.ready_for(text), [{"role": "user", "content": text}]
        earlier = room.questions.like(again)
        question = Question("compare", earlier.messages if earlier else asked)
        async for _ in room.answers(day, question, sample_both):
            pass
        champion, *today = question.answers.values()
        return {"champion": champion.text, "today": (today or [champion])[0].text}

    async def _best_of(self, day: Day, count: int, engine: Engine, question: Question) -> AsyncIterator[Event]:
        """Sample several answers, and keep the one that the owner would pick, as far as the day's lessons tell.

        Yields an empty piece at the beginning and the whole answer at the end. Raises as `sample` does.
        """
        name, begun = f"{question.name}-1", False
        async for _ in sample_one(engine, question, count):
            if not begun:
                yield "answer", {"answer": name, "delta": ""}
            begun = True
        day.pause(False)
        at = 0
        if (pick := any_pick(question)) is not None:
            with contextlib.suppress(WorkerEndedError, WorkerDiedError):
                at = await day.run(day.ask, learner_process.preferred, pick)
        kept = question.keep(at)
        yield "answer", {"answer": kept.name, "delta": kept.text}

    def _named(self, name: str) -> Record:
        if (found := conversations.conversation(self.journal, name)) is None:
            raise RefusedError(404, "there is no such conversation")
        return found

    def _learned_by(self, name: str) -> list[str]:
        return conversations.learned_by(self.journal, name, self.room.home.checkpoints)

    def _record(self, question: Question, day: Day, new: bool, answer: str, finished: bool) -> None:
        """Record a question with an answer that is not blank, at the end of its conversation or as a `new` one."""
        if not answer.strip():
            return
        exchange = [question.messages[-1], {"role": "assistant", "content": answer}]
        add = conversations.record if new else conversations.go_on
        policy = TODAY if day.engine and day.engine.has_adapter else day.champion.name
        keys: dict[str, Any] = {HELD_OUT: question.held_out, SESSION: self.room.session}
        add(self.journal, question.conversation, exchange, policy, unfinished=[] if finished else [answer], **keys)


def is_wish(reply: str) -> bool:
    """Return whether a reply seems to say how the last answer should have been, such as "Shorter, please."."""
    return WISH.match(reply.strip()) is not None and len(reply.split()) <= WISH_WORDS


def grants(wish: str, before: str, after: str) -> bool:
    """Return whether an answer may be what a reply wished for. A shorter or longer one must be shorter or longer."""
    grown, words = len(after.strip()) - len(before.strip()), wish.lower()
    misses = grown >= 0 if "shorter" in words or "briefer" in words else grown <= 0 and "longer" in words
    return is_wish(wish) and not misses


def corrected(answer: str, reply: str) -> str | None:
    """Return the better answer that a reply seems to give, or None.

    A reply is a correction if it begins with "no", "actually" or the like, or if it repeats the answer with a change.
    """
    rest = reply.strip()
    while found := OPENING.match(rest):
        rest = rest[found.end() :]
    if not rest or rest.endswith("?") or rest.lower().startswith(POLITE):
        return None
    words, said = answer.split(), rest.split()
    if len(rest) < len(reply.strip()):
        return rest[0].upper() + rest[1:]
    alike = difflib.SequenceMatcher(None, words, said, autojunk=False).ratio()
    return rest if ALIKE <= alike < 1 and len(said) > 3 else None
