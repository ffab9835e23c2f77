"""What a lesson and an exam save by putting the instruction before the question, unlike version 0.1.0.

    python -m benchmarks.prompts [--repeats 6] [--json]

The lesson is one step of the starter model on 24 worked solutions of different arithmetic problems. As in 0.1.0,
prompts in a pack share nothing if the question comes first. The exam has 400 arithmetic problems and 20 tokens per
answer, about as many as a taught student writes, in the starter night's engine. Both orders alternate in one process,
so a change in the machine's speed affects both. The first turn is not counted. Ratios are medians.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.inputs.starter import STARTER, starter
from benchmarks.machine.child import json_of
from benchmarks.machine.gauge import now
from benchmarks.outputs.page import markdown
from conf.load import STARTER as NIGHT
from conf.load import load_night
from conf.schema import StudentConfig
from models.engine.environment import engine_environment, trainer_environment
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import Example
from rewards.arithmetic import Arithmetic, as_problem, worked_solution
from rewards.data.arithmetic_exercises import exercises
from rewards.data.former_prompts import BEHIND
from rewards.verifier import Problem

LEVELS = ("1", "2")  # the starter night's
SOLUTIONS = 24  # of a lesson's step
PROBLEMS, WRITTEN = 400, 20
COLUMNS = " | tokens, question first | now | seconds, question first | now | ratio"
SHARED = "models.packing.packing.shared_prefix_lengths"
Turn = Callable[[bool], dict[str, float]]  # from whether the question comes first to `seconds` and `tokens`


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
    """Measure a lesson or an exam in a child process with the environment of the trainer or the engine."""
    environment = trainer_environment() if what == "lesson" else engine_environment()
    arguments = ["--measure", what, "--student", str(student), "--repeats", str(repeats)]
    return json_of("benchmarks.prompts", *arguments, environment=environment)


def in_turn(turn: Turn, repeats: int) -> dict[str, Any]:
    """Return each order's median seconds and tokens, and the median ratio of seconds between neighbouring turns."""
    pairs = [(turn(True), turn(False)) for _ in range(repeats + 1)][1:]
    first, today = (
        {name: statistics.median(each[name] for each in side) for name in side[0]} for side in zip(*pairs, strict=True)
    )
    ratio = statistics.median(after["seconds"] / before["seconds"] for before, after in pairs)
    return {"question_first": first, "now": today, "ratio": ratio}


def lesson_turn(student: Path) -> Turn:
    """Return a function that takes a lesson's step with prompts in either order."""
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
    """Return a function that answers an exam's problems greedily, with prompts in either order."""
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


def lessons(student: Path, question_first: bool) -> list[Example]:
    """Return the examples of a lesson's step as token ids: prompts of different problems, and worked solutions.

    `question_first`: whether the prompts have the order of 0.1.0.
    """
    tokenizer, drawn = load_tokenizer(student), islice(exercises("lessons", LEVELS, "train"), 4 * SOLUTIONS)
    problems = {(problem := as_problem(exercise)).question: (problem, exercise) for exercise in drawn}
    return [
        (asked(student, problem, question_first), answer_tokens(tokenizer, worked_solution(exercise)))
        for problem, exercise in islice(problems.values(), SOLUTIONS)
    ]


def asked(student: Path, problem: Problem, question_first: bool) -> list[int]:
    """Return the token ids of a problem's prompt, in today's order or in that of 0.1.0."""
    prompt = f"{problem.question}\n{BEHIND['arithmetic']}" if question_first else Arithmetic().prompt(problem)
    return prompt_tokens(load_tokenizer(student), [{"role": "user", "content": prompt}], StudentConfig(system=""))


def table(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    names = {"lesson": f"a lesson's step, {SOLUTIONS} worked solutions", "exam": f"an exam, {PROBLEMS} problems"}
    rows = []
    for key, name in names.items():
        sides = figures[key]["question_first"], figures[key]["now"]
        cells = [*(f"{side['tokens']:.0f}" for side in sides), *(f"{side['seconds']:.2f}" for side in sides)]
        rows.append([name, *cells, f"{figures[key]['ratio']:.2f}"])
    return markdown(COLUMNS, rows)


if __name__ == "__main__":
    main()
