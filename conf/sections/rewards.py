"""What a completion's reward is made of, and how the programs that a model wrote are run."""

from typing import Annotated, Literal

from pydantic import Field

from conf.sections.section import Section


class RewardConfig(Section):
    """The parts of a completion's reward besides 1 for a correct answer; see `tasks/rollouts/grade.py`."""

    format: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="reward of an answer in the format that the prompt asks for, correct or not"
    )
    length_penalty: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description="subtracted at grpo.max_completion_tokens; shorter completions lose proportionally less",
    )


class SandboxConfig(Section):
    """How programs that a model wrote are run; see docs/security.md."""

    seconds: Annotated[float, Field(gt=0)] = Field(default=5.0, description="CPU time of one program, seconds")
    memory_mb: Annotated[int, Field(ge=64)] = Field(default=512, description="memory of one program, MB")
    allow_missing: tuple[Literal["landlock", "seccomp"], ...] = Field(
        default=(), description="layers of the sandbox that may be missing if the kernel lacks them"
    )
