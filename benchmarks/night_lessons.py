"""Does what an owner teaches reach the model by night? One night's lesson at a time, on answers to everyday questions.

    python -m benchmarks.night_lessons [--arms corrections ratings picks imitation] [--seeds 1 2 3] [--rate 1e-5]

An owner likes answers of *one sentence*, or answers that *ask back*, and teaches 40 questions: `corrections` of the
answers that need it (only the first sentence stays, or a question follows it), `ratings` of one answer each, or `picks`
among five. Then comes the night's lesson with the settings of conf/starter.yaml. `imitation` is the lesson on
corrections as it was before: supervised training on them as a whole. `--rate` gives another learning rate. Before and
after, the taste rates 200 answers to other questions. KL is the mean KL(champion ‖ student) on everyday questions, in
nats a token. Each run is a line in docs/night-lessons.jsonl and is not repeated; writes the table in docs/teaching.md.
"""

import itertools
import json
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.eligibility import Student
from benchmarks.inputs import owners
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, QUESTIONS, corrected
from benchmarks.machine.child import engine
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.records import Run, by, flips, recorded, run_once
from conf.load import STARTER, load_night
from conf.sections.lessons import LessonConfig, WordsConfig
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader

RESULTS, PAGE, NAME = Path("docs/night-lessons.jsonl"), Path("docs/teaching.md"), "benchmarks.night_lessons"
TAUGHT, UNSEEN = 40, 40  # questions; those that are never taught
SAMPLES = 5  # answers to each
MOST_TOKENS = 512
TASTES = ("one sentence", "asks back")
ARMS = ("corrections", "ratings", "picks", "imitation")


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(__doc__, {"--arms": ARMS, "--tastes": TASTES, "--seeds": [1, 2, 3], "--rate": 0.0})
    with engine() as worker:
        student = Student(worker, SAMPLES)
        for seed, taste, arm in itertools.product(given.seeds, given.tastes, given.arms):
            lesson = settings(arm, given.rate)
            what = {"taste": taste, "arm": arm, "rate": lesson.learning_rate, "seed": seed}
            run_once(RESULTS, what, partial(night, student, taste, arm, lesson, seed))
    fill(PAGE, NAME, table(recorded(RESULTS)))


def settings(arm: str, rate: float = 0.0) -> LessonConfig:
    """Return the configuration of an arm's lesson. Its type decides the method."""
    shipped = load_night(STARTER).lessons
    lessons: Mapping[str, LessonConfig] = {
        "corrections": shipped.corrections,
        "ratings": shipped.feedback,
        "picks": shipped.picks,
        "imitation": WordsConfig(learning_rate=shipped.corrections.learning_rate, epochs=shipped.corrections.epochs),
    }
    return lessons[arm].model_copy(update={"learning_rate": rate} if rate else {})


def night(student: Student, taste: str, arm: str, lesson: LessonConfig, seed: int) -> Run:
    """Teach, take the lesson, and return the shares of liked answers to other questions, before and after."""
    questions = random.Random(seed).sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], tuple(questions[UNSEEN:][:TAUGHT])
    examples = taught(student, taste, arm, dict(zip(asked, student.untaught(asked, seed), strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, curve = trainer_process.lesson(
            student.folder, load_night(STARTER).trainer, lesson, examples, Path(folder)
        )
        student.use(checkpoint)
        looks = student.looks(checkpoint, seed, unseen, GOOD[taste])
    return looks | {"lines": len(examples), "steps": len(curve)}


def taught(student: Student, taste: str, arm: str, answers: Mapping[str, Sequence[str]]) -> Sequence[Any]:
    """Return what the owner teaches about the answers to each question, as the lesson's examples."""
    rows = []
    for question, shown in answers.items():
        first, likes = shown[0], GOOD[taste](shown[0])
        line: dict[str, Any] = {
            "messages": json.dumps([{"role": "user", "content": question}]),
            "response": first,
            "correction": corrected(first, taste),
            "value": 1.0 if likes else -1.0,
            "responses": json.dumps(shown),
            "chosen": max(range(SAMPLES), key=lambda at: owners.TASTES[taste](shown[at])),
            "lesson": None,
            "held_out": False,
        }
        if arm in ("ratings", "picks") or (not likes and line["correction"] != first):
            rows.append(line)
    reader, lines = ExampleReader(student.folder, student.config, (), MOST_TOKENS), pd.DataFrame(rows)
    if arm == "imitation":
        return [(pair.prompt, pair.answers[pair.chosen]) for pair in reader.corrections(lines)]
    return {"corrections": reader.corrections, "ratings": reader.feedback, "picks": reader.picks}[arm](lines)


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: the share of liked answers by seed, for each taste, arm and learning rate."""
    rows = []
    for (taste, arm, rate), same in by(runs, "taste", "arm", "rate").items():
        rates = "; ".join(f"{run['before']:.2f} → {run['after']:.2f}" for run in same)
        gain = statistics.mean(run["after"] - run["before"] for run in same)
        *_, p = flips(same)
        lines = statistics.mean(run["lines"] for run in same)
        kl = statistics.mean(run["kl"] for run in same)
        rows.append([taste, arm, f"{rate:g}", f"{lines:.0f}", rates, f"{gain:+.2f}", f"{p:.2g}", f"{kl:.3f}"])
    return markdown("taste | lesson | learning rate | lines | liked answers, by seed | mean gain | p | KL", rows)


if __name__ == "__main__":
    main()
