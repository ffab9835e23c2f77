"""How well exam problems are found in texts.

    NIGHTSCHOOL_DATA=/path/to/data python -m benchmarks.contamination

Reads MATH, GSM8K and MBPP from the folder NIGHTSCHOOL_DATA. Prints the figures of docs/journal.md.
"""

import itertools
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.outputs.page import markdown
from rewards.arithmetic import Arithmetic, worked_solution
from rewards.competition_math import CompetitionMath
from rewards.data.arithmetic_exercises import exercises
from rewards.data.contamination import Contamination
from rewards.gsm8k import Gsm8k
from rewards.mbpp import Mbpp
from rewards.verifier import Benchmark

WORD = re.compile("[a-z]{2,}")
EXERCISES = 3000


def main() -> None:
    """Print the table of exam problems found."""
    if "NIGHTSCHOOL_DATA" not in os.environ:
        raise SystemExit("benchmarks.contamination: set NIGHTSCHOOL_DATA to the folder with the test data")
    print(markdown("texts | exam | found exactly | nearly", contamination()))


def contamination() -> Iterator[list[Any]]:
    """Yield a row for each pair of texts and exam: how many texts match a problem of the exam."""
    math, gsm8k, mbpp, arithmetic = CompetitionMath(), Gsm8k(), Mbpp(), Arithmetic()
    exams: dict[str, Benchmark] = {"MATH": math, "MATH-500": CompetitionMath(subset="500")}
    exams |= {"GSM8K": gsm8k, "MBPP": mbpp, "Arithmetic": arithmetic}
    asked = {name: [problem.question for problem in exam.problems("test")] for name, exam in exams.items()}
    drawn = exercises("contamination", arithmetic.levels, "train")
    worked = [(one.question, worked_solution(one)) for one in itertools.islice(drawn, EXERCISES)]
    for name, exam in (("MATH", math), ("MATH-500", math), ("GSM8K", gsm8k), ("MBPP", mbpp)):
        yield _row("training problems", [(problem.question,) for problem in exam.problems("train")], name, asked[name])
    yield _row("exercises, with their solutions", worked, "Arithmetic", asked["Arithmetic"])
    for words in (1, 2, 3):
        changed = [(text,) for text in changed_words(asked["MATH-500"], words)]
        yield _row(f"questions, {words} words changed", changed, "MATH-500", asked["MATH-500"])


def changed_words(questions: Sequence[str], count: int) -> list[str]:
    """Return the questions with `count` words replaced or removed; those with fewer words are left out."""
    chance = random.Random(count)
    found = []
    for question in questions:
        words = question.split(" ")
        indices = [index for index, word in enumerate(words) if WORD.fullmatch(word)]
        if len(indices) < count:
            continue
        for index in chance.sample(indices, count):
            words[index] = chance.choice(("something", ""))
        found.append(" ".join(words))
    return found


def _row(texts_name: str, texts: Sequence[Sequence[str]], exam_name: str, exam: Sequence[str]) -> list[Any]:
    started = time.perf_counter()
    index = Contamination(exam)
    built = time.perf_counter()
    found = Counter(match.kind for text in texts if (match := index.match_any(text)))
    took = f"{built - started:.1f} s to index, {time.perf_counter() - built:.1f} s to match"
    print(f"{texts_name}: {len(exam)} questions, {len(texts)} texts: {took}", file=sys.stderr)
    return [f"{len(texts)} {texts_name}", exam_name, found["exact"], found["near"]]


if __name__ == "__main__":
    main()
