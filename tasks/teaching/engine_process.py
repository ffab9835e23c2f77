"""The classroom's engine, in a process of its own: it holds the champion, and the day copy as an adapter beside it."""

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from conf.schema import EngineConfig, StudentConfig

if TYPE_CHECKING:  # vLLM is loaded in the engine's process only
    from models.sampler import Sampler

_sampler: "Sampler | None" = None
_champion, _student = Path(), StudentConfig()

Messages = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Answer:
    """An answer as far as it was written. One that is not `finished` was stopped, or cut off by its limit."""

    text: str
    finished: bool


def start(champion: Path, config: EngineConfig, student: StudentConfig) -> None:
    """Load the champion."""
    global _sampler, _champion, _student
    from models.sampler import Sampler

    _champion, _student = champion, student
    _sampler = Sampler(champion, config, trust_remote_code=student.trust_remote_code)


def use_adapter(adapter: Path | None) -> None:
    """Answer for the day copy with this adapter; None: with the champion."""
    _started().use_adapter(adapter)


def greedy_answers(questions: Sequence[str], max_tokens: int) -> list[str]:
    """Return the champion's likeliest answers."""
    prompts = [_prompt([{"role": "user", "content": question}]) for question in questions]
    groups = _started().sample(prompts, 1, seed=0, temperature=0.0, max_tokens=max_tokens)
    return [group[0].text for group in groups]


def write(address: Path, messages: Messages, by_day_copy: Sequence[bool], max_tokens: int) -> list[Answer]:
    """Write an answer for each of `by_day_copy`, by the day copy or by the champion, and return them.

    Their pieces are sent to the Unix socket at `address` as lines of JSON, [answer, text] each; when its reader closes
    it, the answers end there. Raises ValueError, with a sentence, for a conversation without room for an answer.
    """
    sampler, prompt = _started(), _prompt(messages)
    room = sampler.config.max_model_len - len(prompt)
    if room < 1:
        raise ValueError(
            f"the conversation has {len(prompt)} tokens, and the model reads {sampler.config.max_model_len} "
            "(engine.max_model_len): shorten it"
        )
    texts, finished = [""] * len(by_day_copy), [False] * len(by_day_copy)
    steps = sampler.write(prompt, by_day_copy, min(max_tokens, room))
    with socket.socket(socket.AF_UNIX) as reader:
        reader.connect(str(address))
        try:
            for pieces in steps:
                for piece in pieces:
                    texts[piece.answer] += piece.text
                    finished[piece.answer] |= piece.finish == "stop"
                lines = [json.dumps([piece.answer, piece.text]) for piece in pieces if piece.text]
                reader.sendall("".join(f"{line}\n" for line in lines).encode())
        except (BrokenPipeError, ConnectionResetError):  # stopped
            steps.close()
    return [Answer(*pair) for pair in zip(texts, finished, strict=True)]


def _prompt(messages: Messages) -> list[int]:
    from models.hf.loading import load_tokenizer, prompt_tokens

    try:
        return prompt_tokens(load_tokenizer(_champion, _student.trust_remote_code), messages, _student)
    except TemplateError as error:
        raise ValueError(f"the model's chat template refuses this conversation: {error}") from None


def _started() -> "Sampler":
    assert _sampler is not None, "the engine was not started"
    return _sampler
