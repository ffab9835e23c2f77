"""The exam of a night, and the test that a promotion must pass."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from conf.section import Positive, Section
from conf.sections.benchmark import ExamPart


class ExamConfig(Section):
    """The parts of the exam, and the test that a promotion must pass."""

    target: ExamPart
    further_targets: tuple[ExamPart, ...] = Field(
        default=(), description="promote a candidate better at any target and worse at none (Holm's correction)"
    )
    guards: tuple[ExamPart, ...] = Field(default=(), description="parts that must not get worse")
    next_level_at: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="the target and its training take in the next level once the champion's 95 % lower bound is above",
    )
    english_margin: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="a further guard: largest loss at predicting English prose, nats per token; null: none",
    )
    max_completion_tokens: Positive = Field(default=64, description="an answer is cut after so many tokens")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.025, description="probability of promoting a candidate that is no better"
    )
    alpha_spending: Literal["fixed", "quadratic"] = Field(
        default="fixed", description="alpha each night, or 6/(pi k)^2 of it on the k-th night of the same exam"
    )
    vault: Positive | None = Field(
        default=None, description="further problems per part that decide nothing and watch the champion; null: none"
    )
    bootstrap_samples: Annotated[int, Field(ge=1000)] = Field(default=10_000, description="draws of the bootstrap")

    @model_validator(mode="after")
    def parts_have_their_own_names(self) -> Self:
        """Refuse two parts of the same name."""
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"two parts of the exam have the same name: {', '.join(names)}")
        return self

    @property
    def targets(self) -> tuple[ExamPart, ...]:
        """The parts at which a candidate must be better."""
        return (self.target, *self.further_targets)

    @property
    def parts(self) -> tuple[ExamPart, ...]:
        """The targets, then the guards."""
        return (*self.targets, *self.guards)

    @property
    def vault_parts(self) -> tuple[ExamPart, ...]:
        """The vault: the next problems of the test split after those of each part."""
        return tuple(part.following(self.vault) for part in self.parts if self.vault)
