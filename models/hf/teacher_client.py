"""A teacher behind an OpenAI-compatible endpoint: asked within a budget, and nothing twice.

Whatever the server does (it is down, slow, refuses, talks HTML), it costs answers and never raises. What it says
of itself is not repeated anywhere: error messages of such servers quote keys.
"""

import asyncio
import hashlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from conf.sections.lessons import TeacherConfig
from conf.storage.durable import make_folder, write_atomically

AT_ONCE = 4  # questions on their way
PATIENCE = 3  # failures in a row after which the teacher is left alone
A_TURN, A_TEMPLATE = 16, 128  # tokens that a server may add to a turn, and once, as a system text of its own, say
TEMPERATURE = 0.7  # of all answers to a question but the first, which is greedy
HOPELESS = (401, 403, 404)  # of these HTTP answers one is enough


class NoAnswerError(Exception):
    """The teacher gave no answer; says why, in words of our own. `charged`: tries, besides those that came too late."""

    def __init__(self, why: str, *, hopeless: bool = False, charged: int = 1) -> None:
        super().__init__(why)
        self.hopeless, self.charged = hopeless, charged


@dataclass(frozen=True)
class Question:
    """A conversation to answer for the `number`th time (from 0)."""

    messages: tuple[tuple[str, str], ...]  # role and content
    number: int = 0

    @property
    def temperature(self) -> float:
        """The first answer is the teacher's best, the others differ."""
        return TEMPERATURE if self.number else 0.0

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation as the protocol has it."""
        return [{"role": role, "content": content} for role, content in self.messages]


class Tokens(NamedTuple):
    """Of a prompt and of its answer."""

    prompt: int
    answer: int

    def times(self, count: int) -> "Tokens":
        """Of so many such prompts and answers."""
        return Tokens(count * self.prompt, count * self.answer)


@dataclass
class Budget:
    """What a night may spend; each question is reckoned at its worst beforehand and at its usage afterwards."""

    config: TeacherConfig
    prompt_tokens: int = 0
    answer_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Spent so far, those included that are still on their way."""
        return self.prompt_tokens + self.answer_tokens

    @property
    def usd(self) -> float:
        """Spent so far, likewise."""
        prices = self.config.usd_per_million_prompt_tokens, self.config.usd_per_million_answer_tokens
        return (self.prompt_tokens * prices[0] + self.answer_tokens * prices[1]) / 1e6

    def has(self, prompt: int, answer: int) -> bool:
        """Whether so many tokens more are within the night's limits."""
        after = Budget(self.config, self.prompt_tokens + prompt, self.answer_tokens + answer)
        limit = self.config.budget_usd
        return after.tokens <= self.config.budget_tokens and (limit is None or after.usd <= limit)

    def spend(self, prompt: int, answer: int) -> None:
        """Takes tokens out of the budget, or gives them back."""
        self.prompt_tokens += prompt
        self.answer_tokens += answer


@dataclass
class Asked:
    """What came of a night's questions: an answer to each, or None; and the reasons, counted."""

    answers: list[str | None]
    asked: int = 0
    cached: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    tokens: int = 0
    usd: float = 0.0


def ask(
    questions: Sequence[Question], config: TeacherConfig, cache: Path, until: float = math.inf, night: str = ""
) -> Asked:
    """Asks in the given order, a few at once, until all are answered, the budget is spent or the teacher has failed.

    `until`: when that ends at the latest, in seconds since the epoch. `cache` holds what was answered before, by the
    SHA-256 of everything that makes the question, each with the `night` that asked it; and what each night has spent,
    so that its tokens and its money are of all its askings together, also after a kill.
    """
    return asyncio.run(_Lesson(questions, config, cache, night).hold(until))


def answered_before(question: Question, config: TeacherConfig, cache: Path, night: str) -> bool:
    """Whether another night than this one has the answer."""
    found = _cached(_place(question, config, cache))
    return found is not None and found.get("night") != night


class _Lesson:
    def __init__(self, questions: Sequence[Question], config: TeacherConfig, cache: Path, night: str) -> None:
        self.questions, self.config, self.cache, self.night = questions, config, cache, night
        self.spent = cache / f"{night}.spent"
        self.budget, self.asked = Budget(config, *_spent(self.spent)), Asked([None] * len(questions))
        self.failures = 0  # in a row
        self.on_their_way = 0
        self.settled = asyncio.Condition()

    async def hold(self, until: float) -> Asked:
        """Asks all questions, a few at a time, until they are answered or time, tokens or money are spent."""
        from openai import AsyncOpenAI  # a second to import, and most nights ask nobody

        config, asked, before = self.config, self.asked, replace(self.budget)
        own, left = 60 * config.budget_minutes, until - time.time()
        key = os.environ.get(config.key_variable) or "none"  # servers of one's own want none, the library does
        gate = asyncio.Semaphore(AT_ONCE)
        async with AsyncOpenAI(base_url=config.base_url, api_key=key, timeout=config.timeout_seconds) as client:
            try:
                async with asyncio.timeout(min(own, left)):
                    await asyncio.gather(*(self._take(place, client, gate) for place in range(len(self.questions))))
            except TimeoutError:
                over = f"its {config.budget_minutes:g} minutes were over"
                asked.stopped = over if own <= left else "the night's hours left no more time for it"
        asked.tokens, asked.usd = self.budget.tokens - before.tokens, self.budget.usd - before.usd
        return asked

    async def _take(self, place: int, client: Any, gate: asyncio.Semaphore) -> None:
        """One question: from the cache, or from the teacher."""
        question = self.questions[place]
        file = _place(question, self.config, self.cache)
        async with gate:
            if (known := _cached(file)) is not None:
                self.asked.cached += 1
                self.asked.answers[place] = known["answer"]
                return
            worst = Tokens(_most_tokens(question), self.config.max_tokens)
            if not (tries := await self._may_ask(worst)):
                return
            began = time.monotonic()
            try:
                text, used = await self._answer(client, question, worst, tries)
                self.failures = 0
                self.asked.answers[place] = text
                self._keep(file, {"question": question.turns, "answer": text, "night": self.night})
                self._spend(used, worst.times(min(tries - 1, self._late(began)) - tries))
            except NoAnswerError as error:
                self._fail(error, worst, tries, self._late(began))
            finally:
                async with self.settled:
                    self.on_their_way -= 1
                    self.settled.notify_all()

    async def _may_ask(self, worst: Tokens) -> int:
        """How often a question may be tried; 0: not at all. All these tries are taken out of the budget at their worst.

        It may have room once others turned out to be cheaper.
        """
        async with self.settled:
            await self.settled.wait_for(lambda: self.asked.stopped or self.budget.has(*worst) or not self.on_their_way)
            if self.asked.stopped is None and not self.budget.has(*worst):
                self.asked.stopped = "its budget was spent"
            if self.asked.stopped is not None:
                return 0
            tries = next(n for n in range(self.config.retries + 1, 0, -1) if self.budget.has(*worst.times(n)))
            self._spend(worst.times(tries))
            self.asked.asked += 1
            self.on_their_way += 1
            return tries

    async def _answer(self, client: Any, question: Question, worst: Tokens, tries: int) -> tuple[str, Tokens]:
        """The answer and the tokens of prompt and answer. Raises NoAnswerError, whatever happened."""
        import openai

        try:
            async with asyncio.timeout(self.config.timeout_seconds * tries):  # the library's is for each read alone
                reply = await client.with_options(max_retries=tries - 1).chat.completions.create(
                    model=self.config.model,
                    messages=question.turns,
                    temperature=question.temperature,
                    max_tokens=self.config.max_tokens,
                )
        except (TimeoutError, openai.APITimeoutError):
            raise NoAnswerError(f"no answer in {self.config.timeout_seconds:g} s", charged=tries) from None
        except openai.APIConnectionError:
            raise NoAnswerError("no connection", hopeless=True, charged=0) from None
        except openai.APIStatusError as error:
            code = error.status_code
            raise NoAnswerError(f"HTTP {code}", hopeless=code in HOPELESS, charged=0) from None
        except Exception as error:  # whatever a server that is none, or the library, comes up with
            raise NoAnswerError(f"no chat completion ({type(error).__name__})") from None
        try:
            text = reply.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise NoAnswerError("no chat completion") from None
        if not isinstance(text, str) or not text.strip():
            raise NoAnswerError("an empty answer")
        return text.encode("utf-8", "replace").decode(), _used(reply, worst)

    def _late(self, began: float) -> int:
        """How many tries may have timed out since: the library tells of the last one alone, whatever came before it."""
        return int((time.monotonic() - began) / self.config.timeout_seconds)

    def _fail(self, error: NoAnswerError, worst: Tokens, tries: int, late: int) -> None:
        self._spend(worst.times(min(tries, error.charged + late) - tries))
        self.asked.failed[str(error)] += 1
        self.failures += 1
        if error.hopeless or self.failures >= PATIENCE:
            self.asked.stopped = self.asked.stopped or str(error)

    def _spend(self, *amounts: Tokens) -> None:
        """Takes tokens out of the night's budget, or gives them back; what is on its way when it is killed is gone."""
        for amount in amounts:
            self.budget.spend(*amount)
        self._keep(self.spent, [self.budget.prompt_tokens, self.budget.answer_tokens])

    def _keep(self, file: Path, content: Any) -> None:
        make_folder(self.cache)
        write_atomically(file, json.dumps(content))


def _used(reply: Any, worst: Tokens) -> Tokens:
    """The tokens that a reply says it used; the worst case where it says nothing sensible."""
    usage = getattr(reply, "usage", None)
    prompt, answer = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if isinstance(prompt, int) and isinstance(answer, int) and prompt >= 0 and answer >= 0:
        return Tokens(prompt, answer)
    return worst


def _most_tokens(question: Question) -> int:
    """More tokens than a server makes of a question: none is shorter than a byte, however rare the script."""
    turns = (len(content.encode("utf-8", "replace")) + A_TURN for _, content in question.messages)
    return A_TEMPLATE + sum(turns)


def _place(question: Question, config: TeacherConfig, cache: Path) -> Path:
    asked = [config.model, question.turns, question.temperature, config.max_tokens, question.number]
    return cache / f"{hashlib.sha256(json.dumps(asked).encode()).hexdigest()}.json"


def _spent(file: Path) -> Tokens:
    """What a night spent when it asked before; nothing where it did not, or the file was damaged."""
    try:
        prompt, answer = json.loads(file.read_text())
        return Tokens(int(prompt), int(answer))
    except (OSError, ValueError, TypeError):
        return Tokens(0, 0)


def _cached(file: Path) -> dict[str, Any] | None:
    """What was answered before; None where nothing was, or the file was damaged."""
    try:
        found = json.loads(file.read_text())
        return found if isinstance(found["answer"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
