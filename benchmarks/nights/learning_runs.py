"""Runs in which a student learns for a given time, and its weights are kept along the way.

Each run returns points (seconds of learning, checkpoint). The checkpoints are evaluated afterwards.
"""

import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine.child import engine
from benchmarks.nights.timed import (
    FEW_ROUNDS,
    Round,
    metrics_of,
    moments,
    parts,
    rounds_of,
    run_night,
    seconds_within,
    why_over,
)
from conf.load import STARTER, load_night
from rewards.arithmetic import Arithmetic

Point = tuple[float, Path]
ENDLESS = 1000  # rounds: more than fit into a run's time, so the rate hardly falls
FALLING = "grpo.rounds=18"  # about as many as fit into ten minutes on one core of a Zen 4
RATE = "optimizer.learning_rate"
NIGHTS = {  # each differs from the starter's night as its name says, and its rate stays unless it is falling
    "5e-6": [f"{RATE}=5.0e-6"],
    "5e-6, falling": [FALLING, f"{RATE}=5.0e-6"],
    "1e-5, falling": [FALLING, f"{RATE}=1.0e-5"],
    "1e-5": [f"{RATE}=1.0e-5"],
    "2e-5": [f"{RATE}=2.0e-5"],
    "2.5e-6": [f"{RATE}=2.5e-6"],
    "temperature 1": ["grpo.temperature=1"],
    "temperature 1.6": ["grpo.temperature=1.6"],
    "two steps a round": ["grpo.steps_per_round=2"],
    "half of each group": ["grpo.train_on=4"],
    "teacher and reward": ["on_policy.teacher={teacher}"],
}
# The teacher's lesson has three times as many steps, and no rehearsal.
TEACHER = ("distill={steps: 120, batch_size: 32, learning_rate: 1.0e-4, schedule: linear}", "day.generated_traces=3840")
TEACHERS_SEED = 1000  # its solutions are not the student's
WITH_TEACHER = [variant for variant, settings in NIGHTS.items() if "{teacher}" in " ".join(settings)]


def distilled(student: Path, seed: int, folder: Path, settings: Sequence[str] = ()) -> Path:
    """Return the student after the starter night's lessons with this seed and settings.

    The first call trains it; another process that asks meanwhile waits.
    """
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "config.json").exists():
            home = folder.with_name(f"{folder.name}-home")
            shutil.rmtree(home, ignore_errors=True)
            overrides = [f"student.source={student.resolve()}", f"seed={seed}", *FEW_ROUNDS, *settings]
            night = run_night(home, overrides, until=lambda night: (night / "distill" / "manifest.json").exists())
            checkpoint = home / "checkpoints" / (night / "distill" / "checkpoint.txt").read_text()
            checkpoint.rename(folder)
            shutil.rmtree(home)
    return folder


def learn(variant: str, student: Path, teacher: Path, seed: int, seconds: float, work: Path) -> list[Point]:
    """Run a real night without lessons and quizzes, and stop it when its time is over.

    Returns its points: the student at 0 s, then checkpoints until one is at or just after `seconds`. Raises
    RuntimeError if the night ends earlier by itself.
    """
    home, kept = work / "home", work / "kept"
    kept.mkdir(parents=True)
    settings = [f"student.source={student.resolve()}", f"seed={seed}", f"grpo.rounds={ENDLESS}", "distill.steps=0"]
    settings += ["day={generated_traces: 0, generated_preferences: 0}", *FEW_ROUNDS]
    settings += [setting.replace("{teacher}", str(teacher)) for setting in NIGHTS[variant]]
    found: list[Point] = []

    def over(folder: Path) -> bool:
        _keep(folder, home / "checkpoints", kept)
        found[:] = _points(folder, kept)
        return bool(found) and found[-1][0] >= seconds

    folder = run_night(home, settings, until=over)
    if not found or found[-1][0] < seconds:
        early = f"the night ended after {len(found)} rounds, before its {seconds:.0f} s of learning were over"
        raise RuntimeError(f"{early}: {why_over(folder)}")
    beyond = next((place for place, (at, _) in enumerate(found) if at >= seconds), len(found))
    return [(0.0, student), *found[: beyond + 1]]


def accuracies(checkpoints: Sequence[Path]) -> list[float]:
    """Return each checkpoint's greedy accuracy on the exam's levels 1 and 2."""
    # Prefect reads the environment when it is imported
    from tasks.evaluation.answering import answer_questions, render_prompts
    from tasks.rollouts.verified import Player

    config = load_night(STARTER)
    benchmark = Arithmetic(levels=("1", "2"))
    chosen = benchmark.problems("test")
    found = []
    with engine() as worker:
        for checkpoint in checkpoints:
            player = Player(checkpoint, config.student, config.sampler, worker, config.exam.max_completion_tokens)
            prompts = render_prompts(benchmark, chosen, player)
            rows = answer_questions(benchmark, chosen, prompts, player)
            found.append(sum(bool(row["correct"]) for row in rows) / len(rows))
    return found


def learning_seconds(done: Sequence[Round], beside: Sequence[float]) -> list[float]:
    """Return the seconds of learning until each round's new weights were written.

    `beside`: the seconds that each round spent on neither sampling, grading nor update. In the first round, these
    include the start of engine and trainer, so those of the second round are counted in their place.
    """
    start = done[0].begin + beside[0] - beside[1]
    return [one.updated - start for one in done]


def _points(folder: Path, kept: Path) -> list[Point]:
    """Return the points so far, or none before the second round is over, which shows how long starting up took."""
    done = [one for one in rounds_of(moments(folder)) if metrics_of(folder, one.number) is not None]
    if len(done) < 2:
        return []
    beside = [_beside(folder, one) for one in done]
    seconds = learning_seconds(done, beside)
    return [(at, kept / f"round-{one.number:02d}") for at, one in zip(seconds, done, strict=True)]


def _beside(folder: Path, done: Round) -> float:
    of_a_round = parts(done, metrics_of(folder, done.number) or {}, seconds_within(folder, done.number))
    return sum(seconds for name, seconds in of_a_round.items() if name not in ("generate", "score", "update"))


def _keep(folder: Path, checkpoints: Path, kept: Path) -> None:
    """Keep hard links to the weights of the rounds' checkpoints, because the night soon prunes these."""
    for note in folder.glob("round-*/checkpoint/manifest.json"):
        target = kept / note.parent.parent.name
        if not target.exists():
            source = checkpoints / (note.parent / "checkpoint.txt").read_text()
            shutil.copytree(source, target, copy_function=os.link)
