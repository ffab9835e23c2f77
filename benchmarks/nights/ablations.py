"""Small nights of conf/full_day.yaml, each without one of the things that it learns from. Each is recorded as a line.

A night is limited by its numbers of rounds and steps, not by time, so that it learns the same on any machine.
"""

import importlib.metadata
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.nights.whole import whole_night
from benchmarks.outputs.records import commit, machine
from conf.load import STARTER, identity, load_night
from conf.schema import NightConfig
from conf.sections.stages import StageConfig

Where = tuple[str, str, tuple[tuple[str, str], ...]]  # machine, commit, versions: equal for nights that are compared
FULL_DAY = STARTER.with_name("full_day.yaml")
ALL, ROUNDS_ONLY = "all", "rounds only"
ORDER: tuple[StageConfig, ...] = ("lessons", {"grpo": 1}, "distill", "self_distill", {"grpo": 2})
SMALL = (
    "day.generated_traces=112",
    "day.generated_preferences=40",
    "day.generated_corrections=20",
    "day.generated_feedback=12",
    "day.generated_words=16",
    "distill.steps=8",
    "grpo.prompts_per_round=8",
    "grpo.group_size=6",
    "grpo.quiz_every_rounds=0",
    "exam.guards=[]",
    "judge=null",  # the judge and the choice have benchmarks of their own
    "grpo.choice=solve_rate",
)
NO_DAY = tuple(f"day.generated_{kind}=0" for kind in ("traces", "preferences", "corrections", "feedback", "words"))


def _stages(*left_out: str) -> str:
    """Return the override that sets `stages` to `ORDER` without the steps of these kinds."""
    kinds = [step if isinstance(step, str) else next(iter(step)) for step in ORDER]
    return f"stages={json.dumps([step for step, kind in zip(ORDER, kinds, strict=True) if kind not in left_out])}"


# What a night can leave out, and the overrides for that.
PARTS: Mapping[str, tuple[str, ...]] = {
    "worked solutions": ("day.generated_traces=0",),
    "teacher by night": ("distill.teacher=null",),
    "its own answers": (_stages("self_distill"),),
    "on-policy teacher": ("on_policy=null",),
    "corrections": ("day.generated_corrections=0",),
    "words": ("day.generated_words=0",),
    "praise": ("day.generated_feedback=0",),
    "picks": ("day.generated_preferences=0",),
    "picks as a reward": ("preference_learning=direct",),
    "picks as lessons": ("preference_learning=reward_model",),
    "rounds": (_stages("grpo"),),
}
VARIANTS: Mapping[str, tuple[str, ...]] = {
    ALL: (),
    **{f"without {part}": without for part, without in PARTS.items()},
    ROUNDS_ONLY: (*NO_DAY, 'stages=[{"grpo": 2}]'),
}


@dataclass(frozen=True)
class Run:
    """A finished night of a variant. `champion`, `candidate`: accuracies in the first and last quiz of the night.

    `settings`: the identity of its configuration; only nights with the variant's current one are compared. `minutes`:
    the duration of the whole command, or None if it was interrupted.
    """

    variant: str
    seed: int
    settings: str
    champion: float
    candidate: float
    problems: int
    reward_model_served: bool
    minutes: float | None
    machine: str
    commit: str
    versions: Mapping[str, str]

    @property
    def where(self) -> Where:
        """The machine, commit and packages of the run."""
        return self.machine, self.commit, tuple(sorted(self.versions.items()))


def configured(variant: str) -> NightConfig:
    """Return a variant's configuration, with the default seed."""
    return load_night(FULL_DAY, [*SMALL, _stages(), *VARIANTS[variant]])


def settings_of(variant: str) -> str:
    """Return the identity of a variant's configuration, as 12 hex digits."""
    return identity(configured(variant))[:12]


def needs_teacher(variant: str) -> bool:
    """Return whether a variant's night asks a served teacher about problems that the rounds before did not solve."""
    config = configured(variant)
    lesson = next((step for step in config.steps if step.kind == "distill"), None)
    return lesson is not None and lesson.rounds.start > 1 and config.distill.teacher is not None


def run(variant: str, seed: int, student: Path, teacher: Path, homes: Path, results: Path) -> Run:
    """Run or resume one night in its own home, record the night, and remove the home.

    Cached exams stay in `homes`, so that the untouched student is examined once for all nights of a commit.
    """
    settings = settings_of(variant)
    home = homes / f"{variant.replace(' ', '-')}-{settings}-{commit()}-seed-{seed}"
    exams = homes / f"exams-{commit()}"
    if exams.exists():
        shutil.copytree(exams, home / "exams", dirs_exist_ok=True)
    unpacked = (f"student.source={student.resolve()}", f"on_policy.teacher={teacher.resolve()}")  # once for all nights
    overrides = [*SMALL, _stages(), *VARIANTS[variant], *unpacked, f"seed={seed}"]
    summary = whole_night(home, *overrides, config=FULL_DAY)
    outcome = json.loads((summary["folder"] / "fit_reward_model" / "outcome.json").read_text())
    before, *_, after = summary["quizzes"].values()
    finished = Run(
        variant,
        seed,
        settings,
        champion=before["accuracy"],
        candidate=after["accuracy"],
        problems=after["n"],
        reward_model_served=outcome["serves"],
        minutes=summary["minutes"],
        machine=machine(),
        commit=commit(),
        versions=_versions(),
    )
    with results.open("a") as file:
        file.write(json.dumps(vars(finished)) + "\n")
    shutil.copytree(home / "exams", exams, dirs_exist_ok=True)
    shutil.rmtree(home)
    return finished


def here() -> Where:
    """Return the machine, commit and packages that a run started now would have."""
    return machine(), commit(), tuple(sorted(_versions().items()))


def recorded(file: Path) -> list[Run]:
    """Return the runs recorded in a file, in order; an empty list if there is no file."""
    return [Run(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
