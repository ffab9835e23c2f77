"""Answers as vLLM writes them, piece by piece, from an engine in this process."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from vllm import SamplingParams
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind


@dataclass(frozen=True)
class Piece:
    """What an answer got in one step of the engine. `finish`: at its end, `stop` (by itself) or `length`."""

    answer: int
    text: str
    token_ids: list[int]
    finish: str | None


def stream(
    engine: Any, prompt: list[int], adapters: Sequence[LoRARequest | None], max_tokens: int
) -> Generator[list[Piece]]:
    """Yield the pieces of as many answers as there are adapters (None: without one), for each step of the engine.

    Whoever closes the iterator ends the answers that are not finished.
    """
    params = SamplingParams(
        temperature=1.0, top_p=1.0, top_k=0, max_tokens=max_tokens, output_kind=RequestOutputKind.DELTA
    )
    answers = {uuid4().hex: number for number in range(len(adapters))}
    try:
        for request, number in answers.items():
            engine.add_request(request, {"prompt_token_ids": prompt}, params, lora_request=adapters[number])
        while engine.has_unfinished_requests():
            pieces = []
            for output in engine.step():
                for part in output.outputs:
                    ids = list(part.token_ids)
                    pieces.append(Piece(answers[output.request_id], part.text, ids, part.finish_reason))
            yield pieces
    finally:
        if engine.has_unfinished_requests():
            engine.abort_request(list(answers))
