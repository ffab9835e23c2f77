"""Where in their answers the rounds taught the student: solve rates and advantages by token position."""

import json
import math
from itertools import chain, repeat
from pathlib import Path

import pandas as pd

from tasks.layout import rounds
from tasks.report.queries import COMPLETION, round_table
from tasks.rollouts.verdicts import FAILED, JUDGED

PARTS = 12


def by_position(night: Path) -> pd.DataFrame:
    """Return a row for each part of an answer, by the number of its first token (from 0); empty without rounds.

    `first`, `last`: of the answers that are so long, the share that was right in the first and last third of rounds.
    `advantage`: the mean of the part's tokens over all rounds. Episodes are left out: their turns have a table.
    """
    tables = [table for _, folder in rounds(night) if len(table := _answers(folder))]
    if not tables:
        return pd.DataFrame()
    every, third = pd.concat(tables), math.ceil(len(tables) / 3)
    first, last = pd.concat(tables[:third]), pd.concat(tables[-third:])
    longest = int(every["length"].max())
    found: dict[int, dict[str, float]] = {}
    width = max(1, math.ceil(longest / PARTS))
    for start in range(0, longest, width):
        advantages = [*chain.from_iterable(each[start : start + width] for each in every["advantages"])]
        found[start] = {
            "first": first["right"][first["length"] > start].mean(),
            "last": last["right"][last["length"] > start].mean(),
            "advantage": sum(advantages) / len(advantages),
        }
    return pd.DataFrame.from_dict(found, orient="index", dtype=float)


def _answers(folder: Path) -> pd.DataFrame:
    """Return the length of a round's answers, their tokens' advantages, and whether they are right."""
    rollouts, scores = round_table(folder, "sample", "rollouts"), round_table(folder, "score", "scores")
    credited = round_table(folder, "credit", "advantages")
    if rollouts is None or scores is None or credited is None:
        return pd.DataFrame()
    rows = credited.merge(scores, on=COMPLETION).merge(rollouts, on=COMPLETION).dropna(subset=["advantage"])
    single = rows["parts"].map(lambda parts: "turns" not in json.loads(str(parts))).astype(bool)
    rows = rows[single & ~rows["verdict"].isin([FAILED, JUDGED])]
    length = [len(tokens) for tokens in rows["token_ids"]]
    each = [
        list(repeat(whole, count)) if tokens is None else list(tokens)
        for whole, tokens, count in zip(rows["advantage"], rows["token_advantages"], length, strict=True)
    ]
    return pd.DataFrame({"length": length, "advantages": each, "right": rows["verdict"].to_numpy() == "correct"})
