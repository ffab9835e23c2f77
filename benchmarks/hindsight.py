"""Does a follow-up tell the student anything? What it answers with the follow-up in its context, and without it.

    python -m benchmarks.hindsight [--student FOLDER] [--json]

Learning from a follow-up such as "Shorter, please." (hindsight: arXiv 2603.12273) takes the student with the follow-up
in its context as the teacher of the student without it. This can only work if that teacher is better. The student
answers each question, is told one wish, and answers again. Both are rated by whether they fulfil the wish. Prints, for
each wish, both shares, their difference with the p-value of a sign-flip test over questions, and the smallest true
difference that would have been detected four times in five.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs.owners import GOOD, QUESTIONS, TOKENS
from benchmarks.inputs.starter import STARTER, starter
from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from benchmarks.outputs.power import detectable_mean
from conf.load import STARTER as STARTER_NIGHT
from conf.load import load_night
from models.hf.loading import load_tokenizer, prompt_tokens
from tasks.evaluation.statistics import sign_flip
from tasks.workers import engine_process

WISHES = {  # by the name of the taste that rates the answers
    "short": "Shorter, please.",
    "one sentence": "In one sentence, please.",
    "no digits": "Without any digits, please.",
    "asks back": "End with a question, please.",
}
SAMPLES = 4
ALPHA = 0.05


def main() -> None:
    """Ask, wish, ask again, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    config, student = load_night(STARTER_NIGHT), starter(options.student).resolve()
    tokenizer = load_tokenizer(student, config.student.trust_remote_code)
    asked = [[{"role": "user", "content": question}] for question in QUESTIONS]
    rows = []
    with engine() as worker:

        def answers(talks: Sequence[list[dict[str, str]]], seed: int) -> list[list[str]]:
            prompts = [prompt_tokens(tokenizer, talk, config.student) for talk in talks]
            how: Any = {"seed": seed, "temperature": 0.8, "max_tokens": TOKENS}
            groups, _ = worker.call(engine_process.sample, student, config.sampler, prompts, SAMPLES, **how)
            return [[rollout.text for rollout in group] for group in groups]

        plain = answers(asked, 1)
        for number, (taste, wish) in enumerate(WISHES.items(), 2):
            talks = [
                [*talk, {"role": "assistant", "content": group[0]}, {"role": "user", "content": wish}]
                for talk, group in zip(asked, plain, strict=True)
            ]
            rows.append({"wish": wish, **compared(taste, plain, answers(talks, number))})
    if options.json:
        print(json.dumps(rows))
        return
    print(table(rows))


def compared(taste: str, plain: Sequence[Sequence[str]], told: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the shares of answers that fulfil a wish `without` and `with` it, and the test of their difference.

    `detectable` is None if no difference would have been detected.
    """
    before, after = (
        np.array([np.mean([GOOD[taste](text) for text in group]) for group in groups]) for groups in (plain, told)
    )
    least = detectable_mean(after - before, ALPHA)
    return {
        "without": float(before.mean()),
        "with": float(after.mean()),
        "p": sign_flip(after - before),
        "detectable": least,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table, one row for each wish."""
    cells = []
    for row in rows:
        numbers = (row[name] for name in ("without", "with", "p", "detectable"))
        cells.append([row["wish"], *("–" if number is None else f"{number:.3f}" for number in numbers)])
    return markdown("wish | without it | with it in the context | p | would have been detected", cells)


if __name__ == "__main__":
    main()
