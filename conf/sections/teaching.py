"""Teaching by day: how the model learns while its owner watches."""

from typing import Annotated, Literal

from pydantic import Field

from conf.sections.section import Positive, Section, Share
from conf.sections.training import LoraConfig

Nats = Annotated[float, Field(gt=0)]
DAY_ADAPTER = LoraConfig(rank=16, alpha=32)  # the adapter that the day copy trains
ADAPTED = 0.5  # share of the layers that have it: the last ones; a lesson computes the others only once


class TeachConfig(Section):
    """How an adapter learns by day. The champion itself stays unchanged until the night."""

    method: Literal["bounded", "literal"] = Field(
        default="bounded",
        description="bounded: steps with a chosen effect, within limits; literal: gradient steps at a fixed rate",
    )
    step_nats: Nats = Field(
        default=8.0,
        description="how far a lesson moves an answer's log-probability, or its lead over the other answers, in nats",
    )
    kl_per_lesson: Nats = Field(
        default=0.02, description="limit on a lesson's effect on the answers shown: KL divergence, nats per token"
    )
    kl_of_day: Nats = Field(
        default=0.1, description="limit on a day's effect on answers to everyday prompts: KL divergence, nats per token"
    )
    traces: bool = Field(
        default=False, description="eligibility traces: let credit decay backwards through an answer, × 0.94 per token"
    )
    implicit_reward: Share = Field(
        default=0.0,
        description="reward for an answer that the owner follows up, from 0 (off) to 1; answers that the owner leaves "
        "without a response get minus this",
    )
    best_of: Positive = Field(
        default=1,
        description="answers written at each turn of a chat; the one that the day's picks and corrections favour is "
        "shown, once it is complete. Takes effect after five picks or corrections",
    )
    max_answer_tokens: Positive = Field(default=192, description="an answer is cut after this many tokens")
