"""The exam of a night, and the test that a promotion must pass."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from conf.sections.benchmark import ExamPart
from conf.sections.section import Positive, Section


class ExamConfig(Section):
    """The parts of the exam, and the test that a promotion must pass."""

    target: ExamPart
    guards: tuple[ExamPart, ...] = Field(
        default=(), description="parts that must not get worse; examined only if target or picks favour the candidate"
    )
    next_level_at: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="add a level to target and training once the champion's accuracy (95 % lower bound) exceeds this",
    )
    english_margin: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="a guard on language: largest increase in the loss on English prose, nats per token; null: none",
    )
    max_completion_tokens: Positive = Field(default=64, description="an answer is cut after this many tokens")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.025, description="highest probability of promoting a candidate that is no better"
    )
    after_lessons: bool = Field(
        default=False,
        description="for benchmarking: ask all problems of the target once after the lessons and once after the rounds",
    )

    @model_validator(mode="after")
    def parts_have_their_own_names(self) -> Self:
        """Refuse two parts with the same name."""
        names = [part.name for part in self.parts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two parts of the exam are named {twice}; give each another benchmark, subset or levels")
        return self

    @property
    def parts(self) -> tuple[ExamPart, ...]:
        """All parts of the exam: first the target, then the guards."""
        return (self.target, *self.guards)
