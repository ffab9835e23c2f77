"""What the instruction before the question saves, beside the order of 0.1.0: a lesson's step, and an exam.

    python -m benchmarks.prompts [--repeats 6] [--json]

The lesson: a step on 24 worked solutions of different arithmetic problems, by the starter model. As 0.1.0 took it: the
question first, and nothing shared in a pack. The exam: 400 arithmetic problems, 20 tokens of each answer, about as many
as a taught student writes, in the engine of the starter night. Both orders take turns in one process, so that a change
of the machine's speed affects both; the first turn is not counted. Ratios are medians over the turns.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.inputs.starter import STARTER, starter
from benchmarks.inputs.workloads import LEVELS, asked, lessons
from benchmarks.machine.child import json_of
from benchmarks.machine.gauge import now
from conf.load import STARTER as NIGHT
from conf.load import load_night
from models.engine.environment import engine_environment, trainer_environment
from rewards.arithmetic import Arithmetic

PROBLEMS, WRITTEN = 400, 20
SHARED = "models.packing.packing.shared_beginnings"
Turn = Callable[[bool], dict[str, float]]  # of whether the question comes first: its seconds, and its tokens


def main() -> None:
    """Measure both, and print a table or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", choices=("lesson", "exam"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        turn = lesson_turn(options.student) if options.measure == "lesson" else exam_turn(options.student)
        print(json.dumps(in_turn(turn, options.repeats)))
        return
    starter(options.student)
    figures = {
        "lesson": in_child("lesson", options.student, options.repeats),
        "exam": in_child("exam", options.student, options.repeats),
    }
    print(json.dumps(figures) if options.json else table(figures))


def in_child(what: str, student: Path, repeats: int) -> dict[str, Any]:
    """Measure in a child process, with the environment of a trainer or of an engine."""
    environment = trainer_environment() if what == "lesson" else engine_environment()
    arguments = ["--measure", what, "--student", str(student), "--repeats", str(repeats)]
    return json_of("benchmarks.prompts", *arguments, environment=environment)


def in_turn(turn: Turn, repeats: int) -> dict[str, Any]:
    """Return both orders' median seconds and their tokens, and the ratio of neighbouring turns."""
    pairs = [(turn(True), turn(False)) for _ in range(repeats + 1)][1:]
    first, today = (
        {name: statistics.median(each[name] for each in side) for name in side[0]} for side in zip(*pairs, strict=True)
    )
    ratio = statistics.median(after["seconds"] / before["seconds"] for before, after in pairs)
    return {"question_first": first, "now": today, "ratio": ratio}


def lesson_turn(student: Path) -> Turn:
    """Return what takes a lesson's step."""
    from conf.schema import TrainerConfig
    from models.packing.packing import Group, pack, split
    from models.trainer import Trainer

    trainer = Trainer.load(student, TrainerConfig())

    def turn(question_first: bool) -> dict[str, float]:
        examples = lessons(student, question_first)
        apart = patch(SHARED, lambda prompts: [0] * len(prompts)) if question_first else nullcontext()
        with apart:
            started = now()
            trainer.imitate(examples)
            seconds = now() - started
            groups = [Group(prompt, [answer], [row]) for row, (prompt, answer) in enumerate(examples)]
            packs = [pack(batch, trainer.device) for batch in split(groups, trainer.tokens_per_pass)]
        return {"seconds": seconds, "tokens": float(sum(packed.input_ids.numel() for packed in packs))}

    return turn


def exam_turn(student: Path) -> Turn:
    """Return what answers an exam's problems, greedily."""
    from vllm import SamplingParams

    from models.sampler import Sampler

    sampler = Sampler(student, load_night(NIGHT).sampler)
    problems = Arithmetic(LEVELS).problems("test")[:PROBLEMS]
    params = SamplingParams(temperature=0.0, max_tokens=WRITTEN, ignore_eos=True)

    def turn(question_first: bool) -> dict[str, float]:
        requests: Any = [{"prompt_token_ids": asked(student, problem, question_first)} for problem in problems]
        sampler.llm.reset_prefix_cache()
        started = time.perf_counter()
        outputs = sampler.llm.generate(requests, params, use_tqdm=False)
        seconds = time.perf_counter() - started
        read = sum(len(each.prompt_token_ids or ()) - (each.num_cached_tokens or 0) for each in outputs)
        return {"seconds": seconds, "tokens": float(read)}

    return turn


def table(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    lines = ["| | tokens, question first | now | seconds, question first | now | ratio |", "|---|---|---|---|---|---|"]
    names = {
        "lesson": "a lesson's step, 24 worked solutions",
        "exam": f"an exam, {PROBLEMS} problems, {WRITTEN} tokens written each",
    }
    for key, name in names.items():
        before, after = figures[key]["question_first"], figures[key]["now"]
        tokens, seconds = (
            f"{before['tokens']:.0f} | {after['tokens']:.0f}",
            f"{before['seconds']:.2f} | {after['seconds']:.2f}",
        )
        lines.append(f"| {name} | {tokens} | {seconds} | {figures[key]['ratio']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
