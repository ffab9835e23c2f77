"""One sampled completion, on its way from the sampler to the trainer."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rollout:
    """A row of the rollouts table: the sampled tokens with the sampler's log-probabilities.

    `token_ids` includes the sampled end token, unless the completion reached its length limit (`length`); `loss_mask`
    is true for every token that the policy wrote. An episode of several turns is one row: between the answers stand the
    environment's tokens, with a `sampler_logprobs` of 0, and `text` is JSON, a list of the answers. A completion
    without a token that the policy wrote is graded and counts in its group's baseline, but there is nothing to train
    on. `sampler_logprobs`: in nats, one per token. A benchmark's own solution (`given`) was not sampled, and has zeros.
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

    @property
    def written(self) -> int:
        """The number of tokens that the policy wrote."""
        return sum(self.loss_mask)
