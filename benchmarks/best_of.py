"""Is the best of several answers, chosen by the day's picks, what the owner likes?

    python -m benchmarks.best_of [--tastes short …] [--seeds 1 2 3]

A simulated owner picks by its taste among five answers to 25 everyday questions, in the real classroom. Then it asks 40
others in chats, first with `teach.best_of=4`, then with 1: the same day copy writes all answers. Each run is a line in
docs/best-of.jsonl and is not repeated. Writes the table in docs/teaching.md.
"""

import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.champion import home_with_champion
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, QUESTIONS, TASTES
from benchmarks.machine.classroom import Classroom, classroom
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, by, ordered, sweep
from tasks.evaluation.statistics import mcnemar

RESULTS, PAGE, NAME = Path("docs/best-of.jsonl"), Path("docs/teaching.md"), "benchmarks.best_of"
HOMES = Path("school/benchmarks/best-of")
LIKED = ("short", "one sentence")
PICKS, UNSEEN, BEST_OF = 25, 40, 4


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(__doc__, {"--tastes": LIKED, "--seeds": [1, 2, 3]})
    fill(PAGE, NAME, table(sweep(RESULTS, day, taste=given.tastes, seed=given.seeds)))


def day(taste: str, seed: int) -> dict[str, Any]:
    """Teach 25 picks. Return which answers the owner likes, before and after, and the seconds that each answer took."""
    questions = random.Random(seed).sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], questions[UNSEEN : UNSEEN + PICKS]
    home = home_with_champion(HOMES / f"{taste}-{seed}".replace(" ", "-"))
    with classroom(home, [f"teach.best_of={BEST_OF}"]) as room:
        before, _ = chats(room, unseen, taste)
        for question in asked:
            answers = room.ask(question)
            if len(answers) > 1:
                room.teach("pick", max(answers, key=lambda answer: TASTES[taste](answer["text"])))
        best, waited_for_best = chats(room, unseen, taste)
    with classroom(home, ()) as room:
        one, waited = chats(room, unseen, taste)
    return {"before": before, "one": one, "best": best, "seconds": waited, "seconds_best": waited_for_best}


def chats(room: Classroom, questions: Sequence[str], taste: str) -> tuple[list[bool], float]:
    """Ask each question in a chat of its own. Return whether the owner likes the answers, and their median seconds."""
    room.settle()
    liked, seconds = list[bool](), list[float]()
    for question in questions:
        began = time.perf_counter()
        liked.append(GOOD[taste](room.say(question, "")["answer"]["text"]))
        seconds.append(time.perf_counter() - began)
    return liked, statistics.median(seconds)


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: the share of liked answers by taste and seed, and what the best of four adds."""
    rows = []
    for (taste,), same in by(ordered(runs, taste=LIKED, seed=None), "taste").items():
        rates = ["; ".join(f"{statistics.mean(run[when]):.2f}" for run in same) for when in ("before", "one", "best")]
        pairs = [pair for run in same for pair in zip(run["one"], run["best"], strict=True)]
        p = mcnemar(sum(a < b for a, b in pairs), sum(a > b for a, b in pairs))
        gains = [statistics.mean(run["best"]) - statistics.mean(run["one"]) for run in same]
        seconds = [statistics.median(run[when] for run in same) for when in ("seconds", "seconds_best")]
        rows.append([taste, *rates, mean_difference(gains), f"{p:.2g}", *(f"{each:.1f}" for each in seconds)])
    shown = f"one answer | best of {BEST_OF} | gain by seed | p | seconds, one | seconds, best of {BEST_OF}"
    return markdown(f"taste | before | {shown}", rows)


if __name__ == "__main__":
    main()
