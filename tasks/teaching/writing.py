"""The classroom's functions in the engine's process, which writes the answers of the champion and the day copy."""

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import TemplateError

from conf.schema import EngineConfig, StudentConfig
from tasks.workers.engine_process import sampler_at

if TYPE_CHECKING:  # only the engine's process loads vLLM
    from models.sampler import Sampler

Messages = Sequence[dict[str, str]]
ROOM = 48  # tokens for the next answer in a conversation


@dataclass(frozen=True)
class Champion:
    """The model that the engine holds by day, and the settings for loading and prompting it."""

    checkpoint: Path
    engine: EngineConfig
    student: StudentConfig


@dataclass(frozen=True)
class Written:
    """The text of an answer. If it is not `finished`, it was stopped by the reader or cut off at the token limit."""

    text: str
    finished: bool


def load(champion: Champion) -> None:
    """Load the champion, unless the engine already holds it."""
    _sampler(champion)


def use_adapter(champion: Champion, adapter: Path | None) -> None:
    """Set the day copy's adapter. With None, the day copy answers as the champion does."""
    _sampler(champion).use_adapter(adapter)


def write(
    champion: Champion,
    address: Path,
    messages: Messages,
    by_day_copy: Sequence[bool],
    max_tokens: int,
    temperature: float,
    begun: str = "",
) -> list[Written]:
    """Write one answer per item of `by_day_copy`: by the day copy if the item is True, by the champion if False.

    `begun`: the text with which the answers begin; only what follows is sent and returned. Each new piece of text is
    sent to the Unix socket at `address` as a JSON line [answer number, text]. If the reader closes the socket, all
    answers stop. Raises ValueError if the template refuses the conversation, or if it is
    too long (a conversation of several turns must leave `ROOM` tokens for the answer).
    """
    sampler, prompt = _sampler(champion), _prompt(champion, messages, begun)
    length = champion.engine.max_model_len
    if len(prompt) + (ROOM if len(messages) > 2 else 0) >= length:
        raise ValueError(
            f"the conversation has {len(prompt)} tokens, and the model reads {length} "
            "(engine.max_model_len): shorten it, or begin another"
        )
    texts, finished = [""] * len(by_day_copy), [False] * len(by_day_copy)
    steps = sampler.write(prompt, by_day_copy, min(max_tokens, length - len(prompt)), temperature)
    with socket.socket(socket.AF_UNIX) as reader:
        reader.connect(str(address))
        try:
            for pieces in steps:
                for piece in pieces:
                    texts[piece.answer] += piece.text
                    finished[piece.answer] |= piece.finish == "stop"
                lines = [json.dumps([piece.answer, piece.text]) for piece in pieces if piece.text]
                reader.sendall("".join(f"{line}\n" for line in lines).encode())
        except (BrokenPipeError, ConnectionResetError):  # the reader closed the socket
            steps.close()
    return [Written(*pair) for pair in zip(texts, finished, strict=True)]


def _sampler(champion: Champion) -> "Sampler":
    return sampler_at(champion.checkpoint, champion.engine, champion.student.trust_remote_code)


def _prompt(champion: Champion, messages: Messages, begun: str) -> list[int]:
    from models.hf.loading import load_tokenizer, prompt_tokens

    student = champion.student
    tokenizer = load_tokenizer(champion.checkpoint, student.trust_remote_code)
    try:
        return prompt_tokens(tokenizer, messages, student) + tokenizer.encode(begun, add_special_tokens=False)
    except TemplateError as error:
        raise ValueError(f"the model's chat template refuses this conversation: {error}") from None
