"""Nights of conf/full_day.yaml, made small, with one part of what they learn from left out; each leaves one line.

A night is bounded by its numbers of rounds and steps, never by the clock: it learns the same on any machine.
"""

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.nights.timed import run_night
from conf.load import STARTER, identity, load_night
from conf.schema import NightConfig
from conf.sections.stages import StageConfig
from conf.storage.durable import sync

Where = tuple[str, str, tuple[tuple[str, str], ...]]  # machine, commit, versions: what two nights must share
FULL_DAY = STARTER.with_name("full_day.yaml")
ALL, ROUNDS_ONLY = "all", "rounds only"
ORDER: tuple[StageConfig, ...] = ("lessons", {"grpo": 1}, "distill", "self_distill", {"on_policy": 1}, {"grpo": 1})
SMALL = (
    "lessons.examine=false",
    "day.generated_traces=112",
    "day.generated_preferences=40",
    "day.generated_corrections=20",
    "day.generated_feedback=12",
    "day.generated_words=16",
    "distill.steps=8",
    "lessons.picks.method=best_of_n",
    "reward_model.epochs=1",
    "grpo.prompts_per_round=8",
    "grpo.group_size=6",
    "grpo.quiz_every_rounds=0",
    "exam.guards=[]",
)
NO_DAY = tuple(f"day.generated_{kind}=0" for kind in ("traces", "preferences", "corrections", "feedback", "words"))


def _stages(*left_out: str) -> str:
    """The order without the steps of these kinds, as an override."""
    kinds = [step if isinstance(step, str) else next(iter(step)) for step in ORDER]
    return f"stages={json.dumps([step for step, kind in zip(ORDER, kinds, strict=True) if kind not in left_out])}"


# What each night leaves out of the one that has all.
PARTS: Mapping[str, tuple[str, ...]] = {
    "worked solutions": ("day.generated_traces=0",),
    "teacher by night": ("distill.teacher=null",),
    "its own answers": (_stages("self_distill"),),
    "on-policy teacher": (_stages("on_policy"),),
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
    """A finished night of a variant: what of the exam's target champion and candidate solved.

    `settings`: the identity of its configuration; what was measured with another one is not held against it. `minutes`
    of the whole command; None where it was interrupted.
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
        """On what, at which commit and with which packages it ran."""
        return self.machine, self.commit, tuple(sorted(self.versions.items()))


def configured(variant: str) -> NightConfig:
    """A variant's configuration, but for the seed."""
    return load_night(FULL_DAY, [*SMALL, _stages(), *VARIANTS[variant]])


def settings_of(variant: str) -> str:
    """What tells a variant's configuration from any other one."""
    return identity(configured(variant))[:12]


def needs_teacher(variant: str) -> bool:
    """Whether a served teacher is asked: for what rounds before the lesson did not solve."""
    config = configured(variant)
    lesson = next((step for step in config.steps if step.kind == "distill"), None)
    return lesson is not None and lesson.rounds.start > 1 and config.distill.teacher is not None


def run(variant: str, seed: int, student: Path, teacher: Path, homes: Path, results: Path) -> Run:
    """One night in a home of its own, which is removed when it is recorded; one that was interrupted goes on.

    What was answered in exams stays in `homes`: the untouched student sits its own once for all nights of a commit.
    """
    settings = settings_of(variant)
    home = homes / f"{variant.replace(' ', '-')}-{settings}-{_commit()}-seed-{seed}"
    exams = homes / f"exams-{_commit()}"
    begun, started = home.exists(), time.monotonic()
    if exams.exists():
        shutil.copytree(exams, home / "exams", dirs_exist_ok=True)
    unpacked = (f"student.source={student.resolve()}", f"on_policy.teacher={teacher.resolve()}")  # once for all nights
    folder = run_night(home, [*SMALL, _stages(), *VARIANTS[variant], *unpacked, f"seed={seed}"], config=FULL_DAY)
    summary = json.loads((folder / "summary.json").read_text())
    outcome = json.loads((folder / "fit_reward_model" / "outcome.json").read_text())
    found = Run(
        variant,
        seed,
        settings,
        champion=summary["accuracy"]["champion"]["accuracy"],
        candidate=summary["accuracy"]["candidate"]["accuracy"],
        problems=summary["accuracy"]["candidate"]["n"],
        reward_model_served=outcome["serves"],
        minutes=None if begun else round((time.monotonic() - started) / 60, 2),
        machine=machine(),
        commit=_commit(),
        versions=_versions(),
    )
    record(found, results)
    shutil.copytree(home / "exams", exams, dirs_exist_ok=True)
    shutil.rmtree(home)
    return found


def here() -> Where:
    """What a night would run on now."""
    return machine(), _commit(), tuple(sorted(_versions().items()))


def machine() -> str:
    """The processor, and how many of its cores may be used."""
    named = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return f"{named[1] if named else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def record(found: Run, file: Path) -> None:
    """Adds a line to the file of all runs, so that it outlives a power cut; one that a crash tore stays by itself."""
    torn = file.exists() and file.read_bytes()[-1:] not in (b"", b"\n")
    with file.open("a") as stream:
        stream.write(("\n" if torn else "") + json.dumps(vars(found)) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    sync(file.parent)


def recorded(file: Path) -> list[Run]:
    """The runs of a file, in order, without lines that a crash tore; none where there is no file."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            found.append(Run(**json.loads(line)))
    return found


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("torch", "transformers")}


def _commit() -> str:
    """What was run: the last commit that changed more than documents and tests, and whether anything was changed since.

    The runs themselves are noted in a document.
    """
    commit, changed = _git("log", "-1", "--format=%h"), _git("status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changed else commit or "unknown"


def _git(*command: str) -> str:
    code = ["--", ".", ":!docs", ":!tests", ":!*.md"]
    said = subprocess.run(["git", *command, *code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    return said.stdout.strip()
