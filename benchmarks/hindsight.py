"""Does a follow-up tell the student anything? What it answers with the follow-up in its context, and without it.

    python -m benchmarks.hindsight [--student FOLDER]

Learning from a follow-up such as "Shorter, please." (hindsight: arXiv 2603.12273) takes the student with the follow-up
in its context as the teacher of the student without it. This can only work if that teacher is better. The student
answers each question, is told one wish, and answers again. Both are rated by whether they fulfil the wish. Prints, for
each wish, both shares, their difference with the p-value of a sign-flip test over questions, and the smallest true
difference that would have been detected four times in five.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.inputs.answers import Talk, sampled
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, QUESTIONS
from benchmarks.inputs.starter import STARTER, starter
from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from benchmarks.outputs.power import detectable_mean
from tasks.evaluation.statistics import sign_flip

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
    student = starter(options(__doc__, {"--student": STARTER}).student).resolve()
    asked = [[{"role": "user", "content": question}] for question in QUESTIONS]
    rows = []
    with engine() as worker:

        def answers(talks: Sequence[Talk], seed: int) -> list[list[str]]:
            return [[one.text for one in group] for group in sampled(worker, student, talks, SAMPLES, seed)]

        plain = answers(asked, 1)
        for number, (taste, wish) in enumerate(WISHES.items(), 2):
            talks = [
                [*talk, {"role": "assistant", "content": group[0]}, {"role": "user", "content": wish}]
                for talk, group in zip(asked, plain, strict=True)
            ]
            rows.append({"wish": wish, **compared(taste, plain, answers(talks, number))})
    print(table(rows))


def compared(taste: str, plain: Sequence[Sequence[str]], told: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the shares of answers that fulfil a wish `without` and `with` it, and the test of their difference.

    `detectable` is None if no difference would have been detected.
    """
    before, after = (
        np.array([np.mean([GOOD[taste](text) for text in group]) for group in groups]) for groups in (plain, told)
    )
    return {
        "without": float(before.mean()),
        "with": float(after.mean()),
        "p": sign_flip(after - before),
        "detectable": detectable_mean(after - before, ALPHA),
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
