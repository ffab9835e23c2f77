"""The exam of a night: what is examined, and how sure a promotion must be."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from conf.section import Positive, Section
from conf.sections.benchmark import ExamPart


class ExamConfig(Section):
    """What is examined, and how sure a promotion must be."""

    target: ExamPart
    further_targets: tuple[ExamPart, ...] = Field(
        default=(), description="promoted is who is better at any target and worse at none (Holm's correction)"
    )
    guards: tuple[ExamPart, ...] = Field(default=(), description="what must not get worse meanwhile")
    max_completion_tokens: Positive = Field(default=64, description="tokens after which an answer is cut")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        default=0.025, description="probability of promoting a candidate that is no better"
    )
    alpha_spending: Literal["fixed", "quadratic"] = Field(
        default="fixed", description="alpha each night; or spent: 6/(pi k)^2 of it on the k-th night of the same exam"
    )
    vault: Positive | None = Field(
        default=None, description="problems a part, after its own, that decide nothing and watch who serves; null: none"
    )
    bootstrap_samples: Annotated[int, Field(ge=1000)] = Field(default=10_000, description="draws of the interval")

    @model_validator(mode="after")
    def parts_have_their_own_names(self) -> Self:
        """Two parts of one name could not be told apart in any table."""
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"two parts of the exam are named alike: {', '.join(names)}")
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
        """The vault: what follows in the test split after the problems of each part."""
        return tuple(part.following(self.vault) for part in self.parts if self.vault)
