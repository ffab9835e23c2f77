"""What does a night learn from the owner's corrections: by imitating them, or by preferring them to the answers?

    python -m benchmarks.corrections [--arms imitation pairs] [--tastes ...] [--seeds 1 2 3] [--rate 1e-5]

An owner corrects the starter's answers to everyday questions: only the first sentence stays (*one sentence*), or it
stays and a question follows (*asks back*). The night's lesson on these corrections follows, in one of two ways:
`imitation` of the whole correction, which was the lesson until version 0.3, or `pairs`, today's. Before and after, the
taste rates 200 answers to other questions. `KL` is the mean of KL(champion ‖ student) on everyday questions, in nats a
token. Each run is a line in docs/corrections.jsonl and is not repeated; writes the table in docs/teaching.md.
"""

import argparse
import itertools
import json
import random
import re
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks.eligibility import Student, untaught
from benchmarks.nights.ablations import commit, machine
from benchmarks.outputs.page import between, markdown
from benchmarks.teach import GOOD, QUESTIONS
from conf.load import STARTER, load_night
from conf.sections.lessons import CorrectionsConfig, LessonConfig, WordsConfig
from models.hf.loading import answer_tokens
from tasks.evaluation.statistics import mcnemar
from tasks.training import trainer_process
from tasks.training.examples import ExampleReader

RESULTS, PAGE, NAME = Path("docs/corrections.jsonl"), Path("docs/teaching.md"), "benchmarks.corrections"
CORRECTED = 40  # questions whose answers are corrected, if they need it
UNSEEN, SAMPLES = 40, 5
TASTES: Mapping[str, Callable[[str], str]] = {  # the correction of an answer
    "one sentence": lambda text: re.split(r"(?<=[.!?])\s", text.strip())[0],
    "asks back": lambda text: f"{TASTES['one sentence'](text)} What do you think?",
}
ARMS = ("imitation", "pairs")
Run = dict[str, Any]


def main() -> None:
    """Do the missing runs, and write the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", default=[*ARMS], choices=ARMS)
    parser.add_argument("--tastes", nargs="+", default=[*TASTES], choices=TASTES)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--rate", type=float, default=CorrectionsConfig().learning_rate)
    options = parser.parse_args()
    for seed, taste, arm in itertools.product(options.seeds, options.tastes, options.arms):
        what = {"taste": taste, "arm": arm, "seed": seed, "rate": options.rate}
        if not any(what.items() <= run.items() for run in recorded()):
            with RESULTS.open("a") as file:
                file.write(json.dumps(what | night(taste, arm, seed, options.rate)) + "\n")
    PAGE.write_text(between(PAGE.read_text(), NAME, table(recorded())))


def recorded() -> list[Run]:
    """Return the runs so far."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def night(taste: str, arm: str, seed: int, rate: float) -> Run:
    """Correct answers, take the lesson, and return the shares of liked answers to other questions, before and after."""
    at, config, student = commit(), load_night(STARTER), Student()
    questions = random.Random(seed).sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], questions[UNSEEN:][:CORRECTED]
    before = untaught(seed, tuple(unseen), SAMPLES)
    rows = [
        {
            "messages": json.dumps([{"role": "user", "content": question}]),
            "response": text,
            "correction": TASTES[taste](text),
            "lesson": None,
            "held_out": False,
        }
        for question, text in zip(asked, untaught(seed, tuple(asked), 1), strict=True)
        if not GOOD[taste](text)
    ]
    reader = ExampleReader(student.folder, config.student, (), 512)
    examples: Sequence[Any] = reader.corrections(pd.DataFrame(rows))
    lesson: LessonConfig = CorrectionsConfig(learning_rate=rate)
    if arm == "imitation":
        lesson = WordsConfig(learning_rate=rate, epochs=lesson.epochs)
        answers = [answer_tokens(student.tokenizer, row["correction"]) for row in rows]
        prompts = [student.prompt(json.loads(row["messages"])[0]["content"]) for row in rows]
        examples = [*zip(prompts, answers, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        taught, _ = trainer_process.lesson(student.folder, config.trainer, lesson, examples, Path(folder))
        student.use(taught)
    torch.manual_seed(seed)
    after = student.answers(unseen, SAMPLES)
    likes = GOOD[taste]
    pairs = [(likes(old), likes(new)) for old, new in zip(before, after, strict=True)]
    return {
        "machine": machine(),
        "commit": at,
        "corrections": len(examples),
        "before": statistics.mean(old for old, _ in pairs),
        "after": statistics.mean(new for _, new in pairs),
        "gained": sum(new > old for old, new in pairs),
        "lost": sum(new < old for old, new in pairs),
        "kl": student.kl(),
    }


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: the share of liked answers by seed, for each taste, learning rate and arm."""
    rows = []
    for taste, rate, arm in sorted({(run["taste"], run["rate"], run["arm"]) for run in runs}):
        same = [run for run in runs if (run["taste"], run["rate"], run["arm"]) == (taste, rate, arm)]
        rates = "; ".join(f"{run['before']:.2f} → {run['after']:.2f}" for run in same)
        gain = statistics.mean(run["after"] - run["before"] for run in same)
        p = mcnemar(sum(run["gained"] for run in same), sum(run["lost"] for run in same))
        kl = statistics.mean(run["kl"] for run in same)
        rows.append([taste, f"{rate:g}", arm, rates, f"{gain:+.2f}", f"{p:.2g}", f"{kl:.3f}"])
    return markdown("taste | learning rate | lesson | liked answers, by seed | mean gain | p | KL", rows)


if __name__ == "__main__":
    main()
