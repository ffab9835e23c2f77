"""The training steps of a night in order: lessons and blocks of rounds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from conf.sections.section import Positive, Section

Lesson = Literal["distill", "lessons", "self_distill"]
Rounds = Literal["grpo", "self_play"]
# An entry of `stages`, such as `distill`, `grpo`, `{grpo: 10}` or `{self_play: 4}`.
StageConfig = Lesson | Literal["grpo"] | Annotated[dict[Rounds, Positive], Field(min_length=1, max_length=1)]


def _lessons_once(stages: tuple[StageConfig, ...]) -> tuple[StageConfig, ...]:
    """Refuse a second `lessons` entry, because a night trains on the day's lessons only once."""
    if stages.count("lessons") > 1:
        raise ValueError("`lessons` is listed twice, but the day is learned once; remove one")
    return stages


Stages = Annotated[tuple[StageConfig, ...], Field(min_length=1), AfterValidator(_lessons_once)]


class OnPolicyConfig(Section):
    """On-policy distillation: in the rounds, a local teacher also scores each token of the student's completions.

    A token's advantage is `reward_weight` times its completion's, plus `weight` times log p_teacher − log π.
    """

    teacher: str = Field(description="'starter', or the folder or hub id of a model with the student's tokenizer")
    weight: float = Field(default=1.0, gt=0, description="weight of the teacher's scores, per nat")
    reward_weight: float = Field(default=1.0, ge=0, description="weight of the reward; 0: the teacher alone")


class SelfPlayConfig(Section):
    """Rounds on problems that the student writes itself; see docs/self-play.md."""

    proposals: Positive = Field(default=64, description="maximum problems that the student writes per round")
    train: Literal["answerer", "both"] = Field(
        default="answerer", description="both: the student also learns to write problems that it sometimes solves"
    )


@dataclass(frozen=True)
class Step:
    """One training step of the night.

    `number`: position in the night, from 1. `path`: subfolder of the night's folder; for a block, that of its merge.
    `rounds`: round numbers, counted over the whole night; for a lesson, an empty range that begins at the next round.
    """

    number: int
    kind: Lesson | Rounds
    path: str
    rounds: range

    @property
    def is_block(self) -> bool:
        """Whether this step is a block of rounds, possibly an empty one."""
        return self.kind in get_args(Rounds)

    @property
    def again(self) -> str:
        """` 2` if this is the second step of its kind, and so on; empty if it is the first."""
        return self.path.removeprefix(self.kind).replace("-", " ")

    @property
    def rehearsal_path(self) -> str:
        """The subfolder of the answers that a `distill` step rehearses."""
        return self.path.replace("distill", "rehearsal")


def steps(stages: Sequence[StageConfig], rounds: int) -> tuple[Step, ...]:
    """Return the night's steps. `rounds` is divided evenly among the `grpo` entries that give no number."""
    plain = stages.count("grpo")
    shares = iter(rounds // plain + (index < rounds % plain) for index in range(plain))
    seen: Counter[str] = Counter()
    result: list[Step] = []
    done = 0
    for number, stage in enumerate(stages, 1):
        kind, count = next(iter(stage.items())) if isinstance(stage, dict) else (stage, 0)
        if stage == "grpo":
            count = next(shares)
        name = "merge" if kind in get_args(Rounds) else kind
        seen[name] += 1
        path = name if seen[name] == 1 else f"{name}-{seen[name]}"
        result.append(Step(number, kind, path, range(done + 1, done + count + 1)))
        done += count
    return tuple(result)
