"""The report's queries on a night's folder: answers, solve rates, quizzes, verdicts, exams.

Only committed stages are read. If a night has no data for a query, the result is empty.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from conf.storage.layout import MANIFEST, QUIZ, committed_json, passes, ranking_path, rounds
from rewards.environments.episodes import texts_of
from tasks.evaluation.statistics import outcomes
from tasks.rollouts.curriculum import arm_of
from tasks.rollouts.verdicts import FAILED, GIVEN, count

MODELS = {"champion": "champion", "distilled": "after the lessons", "candidate": "candidate"}  # display names
COMPLETION = ["problem_id", "group", "sample"]
EXAM_ANSWER = ["benchmark", "problem_id", "sample"]
EACH = 5


def round_metrics(night: Path) -> pd.DataFrame:
    """Return a table of the rounds' metrics, one row per round, with NaN for values that are missing or not finite.

    `quiz`: the quiz accuracy. `ranked_first`: the share of the owner's held-out picks in which the student ranks the
    chosen answer first. The share at the start of a block is in the row before its first round (row 0 before round 1).
    """
    figures: dict[int, dict[str, Any]] = {}
    for number, folder in rounds(night):
        if start := committed_json(night / ranking_path(number, number - 1), "ranking.json"):
            figures.setdefault(number - 1, {})["ranked_first"] = start["accuracy"]
        figures[number] = committed_json(folder / "checkpoint", "metrics.json") or {}
        figures[number]["quiz"] = _quiz(folder / QUIZ).get("accuracy")
        figures[number]["ranked_first"] = (committed_json(folder / "rank_picks", "ranking.json") or {}).get("accuracy")
    table = pd.DataFrame.from_dict(figures, orient="index").sort_index()
    return table.apply(pd.to_numeric, errors="coerce").replace([math.inf, -math.inf], math.nan)


def quiz_results(night: Path) -> dict[str, dict[str, Any]]:
    """Return each quiz's accuracy and its number of graded answers (`n`), in the order in which the quizzes were taken.

    Keys: `start` (first quiz), else the lesson or block before the quiz (`distill`) or after it (`distill-before`).
    """
    taken = sorted((night / QUIZ).glob(f"*/{MANIFEST}"), key=lambda file: file.stat().st_mtime)
    graded = {file.parent.name: _quiz(file.parent) for file in taken}
    return {name: found for name, found in graded.items() if found}


def solve_rates(night: Path) -> pd.DataFrame:
    """Return a table with a row per kind of problem: the number of graded `answers`, and three solve rates.

    `first` and `last` cover the first and the last third of the rounds, and are NaN if the kind was not drawn then.
    `best` is the rate in the best round. For episodes, a solve rate is the mean of their values.
    """
    scored = [_verified(folder).assign(round=number) for number, folder in rounds(night)]
    rows = pd.concat([table for table in scored if len(table)] or [pd.DataFrame({"verdict": []})])
    rows = rows[~rows["verdict"].isin([FAILED, GIVEN])]
    if rows.empty:
        return pd.DataFrame()
    columns = (rows[name] for name in ("kind", "problem_id", "benchmark", "level"))
    rows["kind"] = [arm_of(*row) for row in zip(*columns, strict=True)]
    rows["solved"] = [
        float(json.loads(parts).get("value", verdict == "correct"))
        for parts, verdict in zip(rows["parts"], rows["verdict"], strict=True)
    ]
    numbers = sorted(rows["round"].unique())
    third = math.ceil(len(numbers) / 3)
    thirds = {"first": rows["round"].isin(numbers[:third]), "last": rows["round"].isin(numbers[-third:])}
    rates = {name: rows[chosen].groupby("kind")["solved"].mean() for name, chosen in thirds.items()}
    rates["best"] = rows.groupby(["kind", "round"])["solved"].mean().groupby("kind").max()
    return pd.DataFrame({"answers": rows["kind"].value_counts(), **rates}).sort_index()


def sampled_answers(night: Path) -> list[dict[Any, Any]]:
    """Return up to ten of the student's completions in the last scored round.

    If possible, five of them are correct, and no problem comes twice.
    """
    for _, folder in reversed(rounds(night)):
        rollouts, rows = round_table(folder, "sample", "rollouts"), _scored(folder)
        if rollouts is None or rows.empty:
            continue
        rows = rows[rows["verdict"] != GIVEN].merge(rollouts[[*COMPLETION, "text", "finish_reason"]], on=COMPLETION)
        rows = rows.sample(frac=1, random_state=0)
        rows = rows.loc[rows["problem_id"].duplicated().sort_values(kind="stable").index]
        right, wrong = rows[rows["verdict"] == "correct"], rows[rows["verdict"] != "correct"]
        count_right = min(len(right), max(EACH, 2 * EACH - len(wrong)))
        chosen = pd.concat([right.head(count_right), wrong.head(2 * EACH - count_right)])
        return [row | {"text": _readable(row)} for row in chosen.to_dict("records")]
    return []


def flipped_answers(night: Path, target: str) -> list[dict[Any, Any]]:
    """Return exam problems that only the candidate (`gained`) or only the champion solved, up to five of each kind.

    Problems of the `target` come first. Each row has the champion's answer (`text`) and the candidate's (`text_after`).
    """
    before, after = (read_table(night / "evaluate" / role, "evaluations") for role in ("champion", "candidate"))
    if before is None or after is None:
        return []
    before, after = (table[table["value"].isna()] for table in (before, after))  # episodes have a picture instead
    both = before.merge(after, on=EXAM_ANSWER, suffixes=("", "_after")).dropna(subset=["correct", "correct_after"])
    shuffled = both.sample(frac=1, random_state=0).sort_values(
        "benchmark", key=lambda part: part != target, kind="stable"
    )
    was, is_now = shuffled["correct"].astype(bool), shuffled["correct_after"].astype(bool)
    chosen = (shuffled[flipped].head(EACH) for flipped in (~was & is_now, was & ~is_now))
    return [row | {"gained": bool(row["correct_after"])} for rows in chosen for row in rows.to_dict("records")]


def benchmark_verdicts(night: Path) -> dict[str, dict[str, int]]:
    """Count the verdicts on each benchmark's training completions, over all rounds."""
    tables = [table for _, folder in rounds(night) if len(table := _verified(folder))]
    return count(pair for table in tables for pair in zip(table["benchmark"], table["verdict"], strict=True))


def exam_verdicts(night: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Count the verdicts on exam answers, by exam part and by the model's display name."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for role, model in MODELS.items():
        table = read_table(night / "evaluate" / role, "evaluations")
        if table is not None:
            counts = count(zip(table["benchmark"], table["verdict"], strict=True))
            found |= {(part, model): verdicts for part, verdicts in counts.items()}
    return dict(sorted(found.items(), key=lambda entry: entry[0][0]))


def excluded_problems(night: Path) -> dict[str, list[str]]:
    """Return, by benchmark or exam part, the problems that were left out because their true answer cannot be parsed."""
    found: dict[str, set[str]] = {}
    stages = [one / "select_prompts" for _, folder in rounds(night) for one in passes(folder)]
    stages += [night / "evaluate" / role for role in MODELS]
    for stage in stages:
        for name, problems in (committed_json(stage, "excluded.json") or {}).items():
            found.setdefault(name, set()).update(problems)
    return {name: sorted(problems) for name, problems in found.items() if problems}


def read_table(folder: Path, name: str) -> pd.DataFrame | None:
    """Return a stage's table, or None if the stage is not committed or has no such table."""
    file = folder / f"{name}.parquet"
    return pd.read_parquet(file) if (folder / MANIFEST).exists() and file.exists() else None


def round_table(folder: Path, stage: str, name: str) -> pd.DataFrame | None:
    """Return one table with a stage's rows for a round and its refills, or None if the stage was never committed."""
    tables = [table for one in passes(folder) if (table := read_table(one / stage, name)) is not None]
    return pd.concat(tables, ignore_index=True) if tables else None


def _quiz(folder: Path) -> dict[str, Any]:
    """Return a quiz's accuracy and the number `n` of its graded answers, or an empty dict if none was graded."""
    table = read_table(folder, "evaluations")
    if table is None:
        return {}
    graded = outcomes(table).dropna()
    return {"accuracy": float(graded.mean()), "n": len(graded)} if len(graded) else {}


def _readable(row: Mapping[Any, Any]) -> str:
    """Return a completion's text. For an episode, join the texts of its turns with newlines."""
    return "\n".join(texts_of(row["text"])) if "turns" in json.loads(row["parts"]) else row["text"]


def _scored(folder: Path) -> pd.DataFrame:
    """Return a round's scores joined with their problems, or an empty table if the round was not scored."""
    scores, prompts = round_table(folder, "score", "scores"), round_table(folder, "select_prompts", "prompts")
    if scores is None or prompts is None:
        return pd.DataFrame()
    asked = prompts[["problem_id", "group", "question", "kind", "benchmark", "level"]]
    return scores.merge(asked, on=["problem_id", "group"])


def _verified(folder: Path) -> pd.DataFrame:
    """Return a round's scores, except for the owner's prompts: no verifier can call answers to them right or wrong."""
    scored = _scored(folder)
    return scored[scored["benchmark"].notna()] if len(scored) else scored
