"""A sampled completion, as the sampler passes it to the trainer."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Rollout:
    """A row of the rollouts table: a prompt, the sampled tokens and the sampler's log-probabilities.

    `token_ids` includes the sampled end token, unless the completion reached its limit (`finish_reason` is `length`).
    `loss_mask` marks the tokens that the policy wrote. `sampler_logprobs`: in nats, one per token. A multi-turn episode
    is one row: the environment's tokens stand between the answers, with `sampler_logprobs` of 0, and `text` is a JSON
    list of the answers. A completion in which the policy wrote no token is graded and counts in its group's baseline,
    but is not trained on. A benchmark's own solution (`given`) was not sampled: its `sampler_logprobs` are 0.
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
