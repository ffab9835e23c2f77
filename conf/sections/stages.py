"""The order of what a night learns: lessons and blocks of rounds, one after the other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from conf.section import HubRevision, Positive, Section

Lesson = Literal["distill", "lessons", "self_distill"]
Rounds = Literal["grpo", "on_policy"]
# As the configuration has it: `distill`, `grpo`, `{grpo: 10}`, `{on_policy: 4}`
StageConfig = Lesson | Literal["grpo"] | Annotated[dict[Rounds, Positive], Field(min_length=1, max_length=1)]


def _lessons_once(stages: tuple[StageConfig, ...]) -> tuple[StageConfig, ...]:
    """What the day brought is learnt once."""
    if stages.count("lessons") > 1:
        raise ValueError("`lessons` stands there twice, but what the day brought is learnt once; leave one out")
    return stages


Stages = Annotated[tuple[StageConfig, ...], Field(min_length=1), AfterValidator(_lessons_once)]


class OnPolicyConfig(Section):
    """On-policy distillation: a local model scores each token of the student's own completions."""

    teacher: str = Field(description="'starter', or folder or hub id of a model with the student's tokenizer")
    revision: HubRevision | None = Field(default=None, description="branch, tag or commit of a hub id")


@dataclass(frozen=True)
class Step:
    """One of the night's stages that learn.

    `number`: its place in the order, from 1 on. `place`: a lesson's in the night's folder; a block's adapter is merged
    there. `rounds`: a block's, numbered on through the night; a lesson has none, and begins with the round after it.
    """

    number: int
    kind: Lesson | Rounds
    place: str
    rounds: range

    @property
    def is_block(self) -> bool:
        """Whether it is a block of rounds, be it of none."""
        return self.kind in ("grpo", "on_policy")

    @property
    def exam(self) -> str:
        """Where an exam after it lies in the night's folder, if there is one."""
        return f"evaluate/step-{self.number}"


def steps(stages: Sequence[StageConfig], rounds: int) -> tuple[Step, ...]:
    """The steps that the configuration means. `rounds`: those of `grpo` without a number, evenly divided among them."""
    plain = stages.count("grpo")
    shares = iter(rounds // plain + (place < rounds % plain) for place in range(plain))
    seen: Counter[str] = Counter()
    found: list[Step] = []
    done = 0
    for number, stage in enumerate(stages, 1):
        kind, count = next(iter(stage.items())) if isinstance(stage, dict) else (stage, 0)
        if stage == "grpo":
            count = next(shares)
        name = "merge" if kind in ("grpo", "on_policy") else kind
        seen[name] += 1
        place = name if seen[name] == 1 else f"{name}-{seen[name]}"
        found.append(Step(number, kind, place, range(done + 1, done + count + 1)))
        done += count
    return tuple(found)
