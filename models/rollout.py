"""A sampled completion, as the sampler passes it to the trainer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from models.transcript import Window, contexts


@dataclass(frozen=True)
class Rollout:
    """A row of the rollouts table: a prompt, the sampled tokens and the sampler's log-probabilities.

    `token_ids` includes the sampled end token, unless the completion reached its limit (`finish_reason` is `length`).
    `loss_mask` marks the tokens that the policy wrote. `sampler_logprobs`: in nats, one per token. A multi-turn episode
    is one row: the environment's tokens stand between the answers, with `sampler_logprobs` of 0, and `text` is a JSON
    list of the answers. A completion in which the policy wrote no token is graded and counts in its group's baseline,
    but is not trained on. A benchmark's own solution (`given`) was not sampled: its `sampler_logprobs` are 0.
    `windows`: the contexts of an episode that has several (see `models/transcript.py`).
    """

    problem_id: str
    group: int
    sample: int
    prompt_token_ids: list[int]
    token_ids: list[int]
    sampler_logprobs: list[float]
    loss_mask: list[bool]
    finish_reason: Literal["stop", "length", "given"]
    text: str
    policy_digest: str
    windows: list[Window] | None = None

    @property
    def written(self) -> int:
        """The number of tokens that the policy wrote."""
        return sum(self.loss_mask)


def by_context(rollouts: Sequence[Rollout]) -> tuple[list[Rollout], list[tuple[int, slice]]]:
    """Split episodes with windows into one rollout per context. Also return each part's row and slice of its tokens.

    A part ends with the last token that the policy wrote in its context.
    """
    parts: list[Rollout] = []
    places: list[tuple[int, slice]] = []
    for row, whole in enumerate(rollouts):
        if not whole.windows:
            parts.append(whole)
            places.append((row, slice(0, len(whole.token_ids))))
            continue
        for prompt, span in contexts(whole.prompt_token_ids, whole.token_ids, whole.windows, whole.loss_mask):
            changes: dict[str, Any] = {"prompt_token_ids": prompt, "windows": None}
            changes |= {name: getattr(whole, name)[span] for name in ("token_ids", "sampler_logprobs", "loss_mask")}
            parts.append(replace(whole, **changes))
            places.append((row, span))
    return parts, places
