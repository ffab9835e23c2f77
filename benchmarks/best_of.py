"""Does it help to write five answers and show the one that the owner would pick, as far as its picks tell?

    python -m benchmarks.best_of [--tastes short …] [--seeds 1 2 3]

A simulated owner picks by its taste among the starter's five answers to 50 everyday questions, and the learner of the
classroom learns each pick. After some of them, the same starter's answers to 100 other questions are judged: one at
random, the one that the picks favour (`DayLearner.preferred`), and the one whose log-probability the lessons raised
most. Both leave the answers themselves as they were. Each run is a line in docs/best-of.jsonl and is not repeated.
Writes the table in docs/teaching.md.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.inputs.starter import starter
from benchmarks.outputs.page import between, markdown
from benchmarks.outputs.records import recorded, run_once
from benchmarks.taste_by_reward import ANSWERS, HOMES, TASTES, TAUGHT, answers, picks
from conf.load import STARTER, load_night
from conf.storage.journal import Preference
from models.hf import lora
from models.hf.loading import answer_tokens, prompt_tokens
from tasks.teaching.day_learner import DayLearner

RESULTS, PAGE, NAME = Path("docs/best-of.jsonl"), Path("docs/teaching.md"), "benchmarks.best_of"
PICKS, OTHERS, LOOKS = 50, 100, (5, 10, 25, 50)


def main() -> None:
    """Do the missing runs, and write the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tastes", nargs="+", default=[*TASTES], choices=TASTES)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    for seed, taste in itertools.product(options.seeds, options.tastes):
        run_once(RESULTS, {"taste": taste, "seed": seed}, partial(day, taste, seed))
    PAGE.write_text(between(PAGE.read_text(), NAME, table(recorded(RESULTS))))


def day(taste: str, seed: int) -> dict[str, Any]:
    """Teach the picks of one owner. Return the share of answers that it likes, by how they were chosen."""
    config, student = load_night(STARTER), starter().resolve()
    HOMES.mkdir(parents=True, exist_ok=True)
    shown = picks(answers(student, TAUGHT, ANSWERS, seed), taste, seed)
    taught, others = shown[:PICKS], shown[PICKS : PICKS + OTHERS]
    liked = [[*map(TASTES[taste], pick.responses)] for pick in others]

    def rate(chosen: Iterable[int | None]) -> float:
        return statistics.mean(own[at] for own, at in zip(liked, chosen, strict=True) if at is not None)

    learner = DayLearner(student, config.teach, config.student, config.engine.max_model_len)
    found = {"any": statistics.mean(map(any, liked)), "random": statistics.mean(map(statistics.mean, liked))}
    for number, pick in enumerate(taught, 1):
        learner.learn(str(number), [pick])
        if number in LOOKS:
            found[f"picks {number}"] = rate(map(learner.preferred, others))
    return found | {"raised": rate(_most_raised(learner, pick) for pick in others)}


def _most_raised(learner: DayLearner, shown: Preference) -> int:
    """Return the answer whose mean log-probability per token the lessons have raised most."""
    prompt = prompt_tokens(learner.tokenizer, [each.model_dump() for each in shown.messages], learner.student)
    tokens = [answer_tokens(learner.tokenizer, text) for text in shown.responses]
    now = learner.day.logprobs(prompt, tokens)
    with lora.disabled(learner.day.model):
        champion = learner.day.logprobs(prompt, tokens)
    change = [float((a - b).mean()) for a, b in zip(now, champion, strict=True)]
    return change.index(max(change))


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table: the share of liked answers by taste and by how they were chosen, mean and by seed."""
    ways = {"one at random": "random", **{f"after {n} picks": f"picks {n}" for n in LOOKS}}
    ways |= {f"most raised by {PICKS} lessons": "raised", "any of the five": "any"}
    rows = []
    for taste in (taste for taste in TASTES if any(run["taste"] == taste for run in runs)):
        same = [run for run in runs if run["taste"] == taste]
        for way, key in ways.items():
            values = [run[key] for run in same]
            rows.append([taste, way, f"{statistics.mean(values):.2f}", "; ".join(f"{value:.2f}" for value in values)])
    return markdown("taste | answer shown | liked | by seed", rows)


if __name__ == "__main__":
    main()
