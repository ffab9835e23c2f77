"""Ask a teacher behind an OpenAI-compatible endpoint, within a budget, and never ask the same question twice.

If the server is down or slow, refuses requests or returns HTML, answers are None, and no exception is raised. The
server's error messages are never shown or stored, because they may quote the API key.
"""

import asyncio
import hashlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conf.sections.lessons import EndpointConfig
from conf.storage.durable import make_folder, read_json, write_atomically

TEACHER_KEY, JUDGE_KEY = "NIGHTSCHOOL_TEACHER_KEY", "NIGHTSCHOOL_JUDGE_KEY"  # environment variables
CONCURRENT_REQUESTS = 4
TIMEOUT = 60.0  # seconds for one attempt at one answer
RETRIES = 2  # further attempts per answer
MAX_FAILURES = 3  # failed questions in a row after which no more are asked
TEMPERATURE = 0.7  # of each answer to a question except the first, which is greedy
FATAL = (401, 403, 404)  # HTTP statuses after which no more questions are asked


class NoAnswerError(Exception):
    """The teacher gave no answer. The message does not quote the server. If `fatal`, no more questions are asked."""

    def __init__(self, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


@dataclass(frozen=True)
class Question:
    """A request for answer `number` (from 0) to a conversation. `messages`: the role and content of each turn."""

    messages: Sequence[dict[str, str]]
    number: int = 0

    @property
    def temperature(self) -> float:
        """The sampling temperature: 0 for the first answer (the teacher's best), TEMPERATURE for later ones."""
        return TEMPERATURE if self.number else 0.0


@dataclass
class Replies:
    """The `answers` (None if missing), the reasons why some are missing, and the `tokens` spent on these questions."""

    answers: list[str | None]
    asked: int = 0
    cached: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    tokens: int = 0


def ask(
    questions: Sequence[Question],
    config: EndpointConfig,
    cache: Path,
    until: float = math.inf,
    night: str = "",
    key: str = TEACHER_KEY,
) -> Replies:
    """Ask the questions in order, a few at a time, until the budget is spent, time is up or the teacher fails.

    `until`: the deadline, in seconds since the epoch. `cache`: a folder of earlier answers; each file is named by the
    SHA-256 of all that defines its question. The folder also records the tokens that each `night` has spent, so the
    token budget covers all of a night's calls, even if the night is killed and resumed. Requests in flight when that
    budget runs out are still answered and counted. `key`: the name of the environment variable with the API key.
    """
    return asyncio.run(_Client(config, cache, night).ask(questions, until, os.environ.get(key) or "none"))


def answered_before(question: Question, config: EndpointConfig, cache: Path, night: str) -> bool:
    """Return whether the cache holds an answer to this question from another night."""
    answer = read_json(_answer_file(question, config, cache))
    return answer is not None and answer["night"] != night


class _Client:
    def __init__(self, config: EndpointConfig, cache: Path, night: str) -> None:
        self.config, self.cache, self.night = config, cache, night
        self.spent_file = cache / f"{night}.spent"
        self.spent: list[int] = read_json(self.spent_file, [0, 0])  # the night's prompt and answer tokens so far
        self.replies = Replies([])
        self.failures = 0  # in a row

    async def ask(self, questions: Sequence[Question], until: float, key: str) -> Replies:
        """Ask the questions. The openai library requires a `key`, even for a server that needs none."""
        from openai import AsyncOpenAI  # takes a second to import, and most nights ask no teacher

        self.replies = replies = Replies([None] * len(questions))
        config, before, slots = self.config, sum(self.spent), asyncio.Semaphore(CONCURRENT_REQUESTS)
        minutes, left = 60 * config.budget_minutes, until - time.time()
        make_folder(self.cache)
        async with AsyncOpenAI(base_url=config.base_url, api_key=key, timeout=TIMEOUT, max_retries=RETRIES) as client:
            try:
                async with asyncio.timeout(min(minutes, left)):
                    await asyncio.gather(*(self._answer(*each, client, slots) for each in enumerate(questions)))
            except TimeoutError:
                over = f"its {config.budget_minutes:g} minutes (budget_minutes) are over"
                replies.stopped = over if minutes <= left else "the night has no more time for it"
        replies.tokens = sum(self.spent) - before
        return replies

    async def _answer(self, index: int, question: Question, client: Any, slots: asyncio.Semaphore) -> None:
        replies, file = self.replies, _answer_file(question, self.config, self.cache)
        async with slots:
            if (known := read_json(file)) is not None:
                replies.cached += 1
                replies.answers[index] = known["answer"]
                return
            if replies.stopped is None and sum(self.spent) >= self.config.budget_tokens:
                replies.stopped = f"the night's budget of {self.config.budget_tokens} tokens (budget_tokens) is spent"
            if replies.stopped is not None:
                return
            replies.asked += 1
            try:
                answer = await self._request(question, client)
            except NoAnswerError as error:
                replies.failed[str(error)] += 1
                self.failures += 1
                if error.fatal or self.failures >= MAX_FAILURES:
                    replies.stopped = replies.stopped or str(error)
                return
            self.failures = 0
            replies.answers[index] = answer
            kept = {"question": question.messages, "answer": answer, "night": self.night}
            write_atomically(file, json.dumps(kept))

    async def _request(self, question: Question, client: Any) -> str:
        """Return the server's answer. Raises NoAnswerError if there is none, whatever the reason."""
        import openai

        # the library's timeout applies to each read, so a server that sends a byte now and then never exceeds it
        try:
            async with asyncio.timeout(TIMEOUT * (1 + RETRIES)):
                reply = await client.chat.completions.create(
                    model=self.config.model,
                    messages=question.messages,
                    temperature=question.temperature,
                    max_tokens=self.config.max_tokens,
                )
        except (TimeoutError, openai.APITimeoutError):
            raise NoAnswerError(f"no answer in {TIMEOUT:g} s") from None
        except openai.APIConnectionError:
            raise NoAnswerError("no connection", fatal=True) from None
        except openai.APIStatusError as error:
            raise NoAnswerError(f"HTTP {error.status_code}", fatal=error.status_code in FATAL) from None
        except Exception as error:  # the library may raise anything if the server does not speak the protocol
            raise NoAnswerError(f"no chat completion ({type(error).__name__})") from None
        self._count(reply, question)
        try:
            text = reply.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise NoAnswerError("no chat completion") from None
        if not isinstance(text, str) or not text.strip():
            raise NoAnswerError("an empty answer")
        return text.encode("utf-8", "replace").decode()

    def _count(self, reply: Any, question: Question) -> None:
        """Add the tokens that the reply reports to the night's total, or an upper bound if it reports none."""
        usage = getattr(reply, "usage", None)
        used: list[Any] = [getattr(usage, f"{part}_tokens", None) for part in ("prompt", "completion")]
        if not all(isinstance(tokens, int) and tokens >= 0 for tokens in used):
            written = "".join(turn["content"] for turn in question.messages)
            used = [len(written.encode("utf-8", "replace")), self.config.max_tokens]
        self.spent = [before + new for before, new in zip(self.spent, used, strict=True)]
        write_atomically(self.spent_file, json.dumps(self.spent))


def _answer_file(question: Question, config: EndpointConfig, cache: Path) -> Path:
    parts = [config.model, question.messages, question.temperature, config.max_tokens, question.number]
    return cache / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.json"
