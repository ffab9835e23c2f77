"""The parts of a completion's reward, and how model-written programs are run."""

from typing import Annotated, Literal

from pydantic import Field

from conf.sections.section import Section


class RewardConfig(Section):
    """The parts of a completion's reward besides the 1 for a correct answer; see `tasks/rollouts/grade.py`."""

    format: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="reward for an answer in the format that the prompt asks for, correct or not"
    )
    length_penalty: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description="what a completion of grpo.max_completion_tokens loses; shorter ones lose proportionally less",
    )


class SandboxConfig(Section):
    """How model-written programs are run; see docs/security.md."""

    seconds: Annotated[float, Field(gt=0)] = Field(default=5.0, description="limit on a program's CPU time, seconds")
    memory_mb: Annotated[int, Field(ge=64)] = Field(default=512, description="limit on a program's memory, MB")
    allow_missing: tuple[Literal["landlock", "seccomp"], ...] = Field(
        default=(), description="layers of the sandbox that may be missing if the kernel lacks them"
    )
