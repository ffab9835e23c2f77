"""In vLLM's place: completions of a tiny student, sampled by plain PyTorch; the same seed gives the same ones."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from models.rollout import Rollout
from tests.models.support.tiny import END, plain_model


def prepare() -> None:
    """Import nothing: vLLM is not needed."""


def sample(*arguments: Any, **options: Any) -> Any:
    """Run `engine_process.sample` in the engine's process, with this module in place of `models.sampler`."""
    sys.modules.setdefault("models.sampler", sys.modules[__name__])
    from tasks.workers import engine_process

    return engine_process.sample(*arguments, **options)


def kv_tokens(*arguments: Any, **options: Any) -> int:
    """Return how many tokens the engine's cache holds: enough for all."""
    return Sampler.kv_tokens


class Sampler:
    """The part of the sampler that `tasks/workers/engine_process.py` uses."""

    probe_difference = 0.0
    kv_tokens = 10_000

    def __init__(self, checkpoint: Path, config: Any, *, trust_remote_code: bool = False) -> None:
        torch.set_num_threads(1)
        self.load_weights(checkpoint)

    def load_weights(self, checkpoint: Path) -> None:
        from models.hf.checkpoint import base_of, is_adapter
        from models.hf.loading import load_tokenizer

        self.model: Any = plain_model(base_of(checkpoint))
        if is_adapter(checkpoint):
            from models.hf.lora import merge_in_memory

            merge_in_memory(self.model, checkpoint)
        self.tokenizer: Any = load_tokenizer(checkpoint)
        self.end = self.tokenizer.convert_tokens_to_ids(END)
        self.digest = checkpoint.name

    def use(self, checkpoint: Path) -> None:
        if checkpoint.name != self.digest:
            self.load_weights(checkpoint)

    def sleep(self) -> None: ...

    @torch.no_grad()
    def sample(
        self,
        prompts: Sequence[list[int]],
        size: int,
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
        fresh: bool = True,
    ) -> list[list[Rollout]]:
        chance = torch.Generator().manual_seed(seed)
        return [self._group(n, prompt, size, chance, temperature, max_tokens) for n, prompt in enumerate(prompts)]

    def _group(
        self, group: int, prompt: list[int], size: int, chance: torch.Generator, temperature: float, limit: int
    ) -> list[Rollout]:
        ids = torch.tensor([prompt] * size)
        logprobs = torch.zeros(size, 0)
        for _ in range(limit):
            logits = self.model(input_ids=ids, use_cache=False).logits[:, -1].float()
            step = (logits / (temperature or 1.0)).log_softmax(dim=-1)
            drawn = step.exp().multinomial(1, generator=chance) if temperature else step.argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, drawn], dim=1)
            logprobs = torch.cat([logprobs, step.gather(1, drawn)], dim=1)
            if (ids[:, len(prompt) :] == self.end).any(dim=1).all():
                break
        written = ids[:, len(prompt) :].tolist()
        return [
            self._rollout(group, number, prompt, tokens, values)
            for number, (tokens, values) in enumerate(zip(written, logprobs.tolist(), strict=True))
        ]

    def _rollout(self, group: int, number: int, prompt: list[int], tokens: list[int], values: list[float]) -> Rollout:
        ended = self.end in tokens
        length = tokens.index(self.end) + 1 if ended else len(tokens)
        text = self.tokenizer.decode(tokens[: length - ended], skip_special_tokens=False)
        return Rollout(
            problem_id="",
            group=group,
            sample=number,
            prompt_token_ids=prompt,
            token_ids=tokens[:length],
            sampler_logprobs=values[:length],
            loss_mask=[True] * length,
            finish_reason="stop" if ended else "length",
            text=text,
            policy_digest=self.digest,
        )
