"""The day: how the model learns while its owner watches."""

from typing import Annotated, Literal

from pydantic import Field

from conf.sections.section import Positive, Section, Share
from conf.sections.training import LoraConfig

Nats = Annotated[float, Field(gt=0)]
DAY_ADAPTER = LoraConfig(rank=16, alpha=32)  # with which the day copy learns


class TeachConfig(Section):
    """Learning by day, on an adapter beside the champion, which itself stays as it is until the night."""

    method: Literal["bounded", "literal"] = Field(
        default="bounded",
        description="bounded: steps of a chosen effect, within limits; literal: gradient steps of a fixed rate",
    )
    step_nats: Nats = Field(
        default=8.0,
        description="what a lesson changes an answer's log-probability by, or its lead over others, in nats",
    )
    kl_per_lesson: Nats = Field(
        default=0.02, description="most that a lesson may change the answers shown: KL divergence, nats per token"
    )
    kl_of_day: Nats = Field(
        default=0.1, description="most that a day may change answers to everyday prompts: KL divergence, nats per token"
    )
    traces: bool = Field(default=False, description="credit fades backwards through an answer, by 0.94 a token")
    implicit_reward: Share = Field(
        default=0.0,
        description="reward of an answer after which the conversation goes on, from 0 (off) to 1; answers that were "
        "left without a word get its negative; below 0.25, only the day copy learns from it",
    )
    max_answer_tokens: Positive = Field(default=96, description="an answer is cut after so many tokens")
