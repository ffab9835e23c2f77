"""Short nights of rounds alone, from the same student, compared in pairs of the same seed."""

import json
import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.machine.child import json_of
from benchmarks.nights.learning_runs import distilled
from conf.load import STARTER
from conf.storage.home import Home

HOMES = SCHOOL / "short_nights"
ROUNDS = 6
SETTINGS = (
    "benchmarks=[{name: arithmetic}]",
    "grpo.prompts_per_round=16",
    "grpo.refills=0",
    "grpo.quiz_every_rounds=0",
    "budget_minutes=null",
    "day.generated_traces=0",
    "exam.guards=[]",
    "exam.english_margin=null",
    "exam.after_lessons=true",
    "lessons.quiz_problems=0",
    "exam.next_level_at=null",
    "exam.target={benchmark: arithmetic, problems: 400}",
)


class Run(NamedTuple):
    """A night: its folder, the share of the exam that it gained, and the tokens that it sampled."""

    folder: Path
    gain: float
    tokens: int


def short_nights(variants: Mapping[str, Sequence[str]], seeds: Sequence[int]) -> dict[str, list[Run]]:
    """Return the outcomes of each variant, which is some settings, in the order of the seeds; run seed by seed."""
    nights = {(name, seed): short_night(name, seed, settings) for seed in seeds for name, settings in variants.items()}
    return {name: [nights[name, seed] for seed in seeds] for name in variants}


def short_night(variant: str, seed: int, settings: Sequence[str]) -> Run:
    """Return the outcome of a seed's night, which begins with the student that the starter night's lessons made.

    All nights have the same first student. It answers the exam, 400 problems of all five levels of Arithmetic, once.
    A finished night is not run again, even if another benchmark asks for it.
    """
    student = distilled(starter(), 1, make(HOMES) / "student")
    home, exams = Home(HOMES.resolve() / f"{variant.replace(' ', '-')}-{seed}"), HOMES / "exams"
    if exams.exists() and not home.root.exists():
        home.make_private()
        shutil.copytree(exams, home.exams)
    overrides = [f"seed={seed}", f"student.source={student.resolve()}", *SETTINGS, *settings]
    arguments = ["--json", "--config", str(STARTER), "--date", "2026-01-01", *(f"--set={each}" for each in overrides)]
    summary = json_of("flows", "night", *arguments, environment={"NIGHTSCHOOL_HOME": str(home.root)})
    if not exams.exists():
        shutil.copytree(home.exams, exams)
    folder = home.night(summary["night"])
    decision = json.loads((folder / "decide" / "decision.json").read_text())
    sampled = [pd.read_parquet(file, columns=["token_ids"]) for file in folder.glob("round-*/**/rollouts.parquet")]
    tokens = sum(int(table["token_ids"].map(len).sum()) for table in sampled)
    return Run(folder, decision["growth"]["difference"], tokens)


def table(found: Mapping[str, Sequence[Run]], first: str, reference: str) -> str:
    """Return the gains in Markdown: `first` heads the first column, the variants are compared to `reference`."""
    lines = [
        f"| {first} | gain, each seed | mean | per million tokens | against {reference} |",
        "|---|---|---|---|---|",
    ]
    for variant, runs in found.items():
        gains = [run.gain for run in runs]
        rate = statistics.mean(1e6 * run.gain / run.tokens for run in runs)
        each = ", ".join(f"{gain:+.3f}" for gain in gains)
        beside = "" if variant == reference else against(gains, [run.gain for run in found.get(reference, [])])
        lines.append(f"| {variant} | {each} | {statistics.mean(gains):+.3f} | {rate:+.2f} | {beside} |")
    return "\n".join(lines)


def against(gains: Sequence[float], others: Sequence[float]) -> str:
    """Return the mean difference of pairs of nights with its interval; empty where there are no two pairs."""
    if len(others) != len(gains) or len(gains) < 2:
        return ""
    differences = [one - other for one, other in zip(gains, others, strict=True)]
    low, high = students_interval(differences)
    return f"{statistics.mean(differences):+.3f} [{low:+.3f}, {high:+.3f}]"


def students_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return Student's 95 % interval of the mean of two differences or more, mean ± t · s / √n."""
    from scipy.stats import t

    mean, count = statistics.mean(differences), len(differences)
    half = float(t.ppf(0.975, count - 1)) * statistics.stdev(differences) / math.sqrt(count)
    return mean - half, mean + half
