"""Short nights of nothing but rounds, all from the same student, compared in pairs with the same seed."""

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import starter
from benchmarks.nights.learning_runs import distilled
from benchmarks.nights.whole import whole_night
from benchmarks.outputs.page import joined, markdown
from benchmarks.outputs.power import mean_difference
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
    """A night: its folder, its gain in accuracy in the exam, and the number of tokens that it sampled."""

    folder: Path
    gain: float
    tokens: int


def short_nights(variants: Mapping[str, Sequence[str]], seeds: Sequence[int]) -> dict[str, list[Run]]:
    """Run each variant (name → settings) with each seed. Return each variant's runs in the order of the seeds."""
    nights = {(name, seed): short_night(name, seed, settings) for seed in seeds for name, settings in variants.items()}
    return {name: [nights[name, seed] for seed in seeds] for name in variants}


def short_night(variant: str, seed: int, settings: Sequence[str]) -> Run:
    """Run a variant's night with a seed unless it is finished, and return its outcome.

    All nights start with one student, the starter night's after its lessons. It answers the exam (400 problems of all
    five levels of Arithmetic) once. Finished nights are not run again, even if another benchmark asks for them.
    """
    student = distilled(starter(), 1, make(HOMES) / "student")
    home, exams = Home(HOMES.resolve() / f"{variant.replace(' ', '-')}-{seed}"), HOMES / "exams"
    if exams.exists() and not home.root.exists():
        home.make_private()
        shutil.copytree(exams, home.exams)
    summary = whole_night(home.root, f"seed={seed}", f"student.source={student.resolve()}", *SETTINGS, *settings)
    if not exams.exists():
        shutil.copytree(home.exams, exams)
    sampled = summary["folder"].glob("round-*/**/rollouts.parquet")
    tokens = sum(int(pd.read_parquet(file, columns=["token_ids"])["token_ids"].map(len).sum()) for file in sampled)
    return Run(summary["folder"], summary["growth"]["difference"], tokens)


def table(found: Mapping[str, Sequence[Run]], reference: str) -> str:
    """Return a Markdown table of the gains, with each variant compared to the variant `reference`."""
    rows = []
    for variant, runs in found.items():
        gains = [run.gain for run in runs]
        rate = statistics.mean(1e6 * run.gain / run.tokens for run in runs)
        beside = "" if variant == reference else against(gains, [run.gain for run in found.get(reference, [])])
        rows.append([variant, joined(gains, "+.3f"), f"{statistics.mean(gains):+.3f}", f"{rate:+.2f}", beside])
    return markdown(f"problems | gain, each seed | mean | per million tokens | against {reference}", rows)


def against(gains: Sequence[float], others: Sequence[float]) -> str:
    """Return the mean difference over pairs of nights, with its interval. Empty if there are fewer than two pairs."""
    if len(others) != len(gains) or len(gains) < 2:
        return ""
    return mean_difference([one - other for one, other in zip(gains, others, strict=True)])
