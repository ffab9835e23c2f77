"""What bf16 weights retain of a lesson: rounded to nearest, and rounded stochastically after each step.

    python -m benchmarks.rounding [--picks 32]

The starter learns picks (DPO) and words at their default rates, each lesson twice: with weights rounded to nearest and
with `Trainer.round_stochastically`. The figure for picks is the margin of the picked answers' log-probability over the
others', in nats per answer; for words it is the loss, in nats per token. Prints a JSON object per lesson. Where the
trainer computes in float32, nothing is rounded.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inputs.starter import starter
from benchmarks.inputs.tastes import picks as drawn_picks
from conf.load import STARTER as STARTER_NIGHT
from conf.load import load_night
from conf.sections.lessons import PicksConfig, WordsConfig
from flows import environment
from models.hf.loading import load_tokenizer
from models.lessons import sft_preference
from models.lessons.preference_data import Example, Pick
from models.trainer import Trainer
from rewards.data.synthetic_journal import generated_lines
from tasks.reward_model.preferences import day_picks
from tasks.training.trainer_process import lesson_config

NIGHT = load_night(STARTER_NIGHT)
DATE = "2026-01-01"


@dataclass(frozen=True)
class Lesson:
    """A lesson's learning rate, its steps, and the figure that measures it."""

    learning_rate: float
    steps: Callable[[Trainer], Iterator[sft_preference.Metrics]]
    figure: Callable[[Trainer], float]


def main() -> None:
    """Run both lessons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picks", type=int, default=32, help="picks, and as many texts")
    options = parser.parse_args()
    environment.prepare()
    student = starter()
    for name, lesson in _lessons(student, options.picks).items():
        print(json.dumps({"lesson": name} | effects(student, lesson)), flush=True)


def effects(student: Path, lesson: Lesson) -> dict[str, float]:
    """Return the figure before the lesson, and its change with each way of rounding."""
    found: dict[str, float] = {}
    for way in ("nearest", "stochastic"):
        trainer = Trainer(student, lesson_config(NIGHT.trainer, lesson.learning_rate))
        found["before"] = lesson.figure(trainer)
        for _ in lesson.steps(trainer):
            if way == "stochastic":
                trainer.round_stochastically()
        found[way] = lesson.figure(trainer) - found["before"]
    return {name: round(value, 4) for name, value in found.items()}


def _lessons(student: Path, count: int) -> dict[str, Lesson]:
    tokenizer, levels = load_tokenizer(student), NIGHT.benchmarks[0].levels
    drawn = drawn_picks("short", count, "rounding")
    day = day_picks(drawn, DATE, tokenizer, NIGHT.student)
    picks = [*day.fitted, *day.held_out]
    texts = [tokenizer.encode(line["text"]) for line in generated_lines("words", "rounding", count, levels, DATE)]
    words: list[Example] = [(text[:1], text[1:]) for text in texts]
    return {
        "picks": Lesson(
            PicksConfig().learning_rate,
            lambda trainer: sft_preference.dpo(trainer, picks, PicksConfig(), NIGHT.seed),
            lambda trainer: _margin(trainer, picks),
        ),
        "words": Lesson(
            WordsConfig().learning_rate,
            lambda trainer: sft_preference.imitation(trainer, words, WordsConfig(), NIGHT.seed),
            lambda trainer: _loss(trainer, words),
        ),
    }


def _margin(trainer: Trainer, picks: Sequence[Pick]) -> float:
    """Return the mean of log π of the picked answer minus that of each other one, in nats per answer."""
    groups = sft_preference.answer_groups([(pick.prompt, pick.answers) for pick in picks])
    found = sft_preference.answer_logprobs(trainer, groups).tolist()
    margins = [
        found[group.rows[pick.chosen]] - found[row]
        for pick, group in zip(picks, groups, strict=True)
        for place, row in enumerate(group.rows)
        if place != pick.chosen
    ]
    return sum(margins) / len(margins)


def _loss(trainer: Trainer, words: Sequence[Example]) -> float:
    """Return −log π of the texts' tokens, in nats per token."""
    found = sft_preference.answer_logprobs(
        trainer, sft_preference.answer_groups([(first, [rest]) for first, rest in words])
    )
    return -float(found.sum()) / sum(len(rest) for _, rest in words)


if __name__ == "__main__":
    main()
