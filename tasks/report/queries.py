"""What the report shows of a night's folder: answers, flips, solve rates, verdicts. What is not there is left out."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.layout import passes, rounds
from tasks.rollouts.verdicts import FAILED, VERDICTS, count

WHO = {"champion": "champion", "distilled": "after distillation", "candidate": "candidate"}
PLACE = ["problem_id", "group", "sample"]
EXAM_PLACE = ["benchmark", "problem_id", "sample"]
EACH = 5


@dataclass(frozen=True)
class Answer:
    """A training completion and its judgement."""

    question: str
    text: str
    verdict: str
    reward: float | None
    finish_reason: str


@dataclass(frozen=True)
class Flip:
    """An exam problem that one of champion and candidate solved and the other did not."""

    question: str
    before: str
    after: str
    gained: bool


def round_metrics(night: Path) -> pd.DataFrame:
    """The rounds' figures, one row a round; what is not a finite number is missing."""
    figures = {number: read_json(folder / "checkpoint", "metrics.json") or {} for number, folder in rounds(night)}
    table = pd.DataFrame.from_dict(figures, orient="index").sort_index()
    return table.apply(pd.to_numeric, errors="coerce").replace([math.inf, -math.inf], math.nan)


def quiz_accuracies(night: Path) -> dict[int, float]:
    """The share of graded quiz answers that was correct, by round."""
    tables = {number: read_table(folder / "quiz", "evaluations") for number, folder in rounds(night)}
    graded = {number: table["correct"].dropna() for number, table in tables.items() if table is not None}
    return {number: float(correct.astype(bool).mean()) for number, correct in graded.items() if len(correct)}


def lesson_losses(night: Path) -> pd.Series:
    """The loss of every step of the lessons on worked solutions, those of a second lesson after the first one's."""
    curves = [file.parent for file in night.glob("*distill*/curve.json")]
    curves.sort(key=lambda folder: (int("".join(filter(str.isdigit, folder.name)) or 1), folder.name))
    losses = [step["loss"] for folder in curves for step in read_json(folder, "curve.json") or []]
    return pd.Series(losses, index=range(1, len(losses) + 1), dtype=float)


def solve_rates(night: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The share of each round's completions that was correct, kinds × rounds (NaN: none drawn), and their number."""
    scored = [_verified(folder).assign(round=number) for number, folder in rounds(night)]
    rows = pd.concat([table for table in scored if len(table)] or [pd.DataFrame({"kind": []})])
    if rows.empty:
        return pd.DataFrame(), pd.Series(dtype=float)
    rows["kind"] = _broad_kinds(rows)
    rows["solved"] = rows["verdict"].eq("correct").where(rows["verdict"] != FAILED).astype(float)
    rates = rows.pivot_table(index="kind", columns="round", values="solved", aggfunc="mean")
    rates = rates.dropna(how="all")
    return rates, rows["kind"].value_counts().reindex(rates.index)


def sampled_answers(night: Path) -> list[Answer]:
    """Ten completions of the last round, five of them correct where there are as many, and of different problems."""
    for _, folder in reversed(rounds(night)):
        rollouts, rows = _whole(folder, "sample", "rollouts"), _scored(folder)
        if rollouts is None or rows.empty:
            continue
        rows = rows.merge(rollouts[[*PLACE, "text", "finish_reason"]], on=PLACE).sample(frac=1, random_state=0)
        rows = rows.loc[rows["problem_id"].duplicated().sort_values(kind="stable").index]
        right, wrong = rows[rows["verdict"] == "correct"], rows[rows["verdict"] != "correct"]
        some = min(len(right), max(EACH, 2 * EACH - len(wrong)))
        chosen = pd.concat([right.head(some), wrong.head(2 * EACH - some)]).astype({"reward": object})
        chosen["reward"] = chosen["reward"].where(chosen["reward"].notna(), None)
        return [
            Answer(row["question"], row["text"], row["verdict"], row["reward"], row["finish_reason"])
            for row in chosen.to_dict("records")
        ]
    return []


def flipped_answers(night: Path) -> list[Flip]:
    """Five exam problems that only the candidate solved, and five that only the champion did."""
    before, after = (read_table(night / "evaluate" / who, "evaluations") for who in ("champion", "candidate"))
    if before is None or after is None:
        return []
    both = before.merge(after, on=EXAM_PLACE, suffixes=("", "_after")).dropna(subset=["correct", "correct_after"])
    was, is_now = both["correct"].astype(bool), both["correct_after"].astype(bool)
    chosen = [
        (row, gained)
        for rows, gained in ((both[~was & is_now], True), (both[was & ~is_now], False))
        for row in rows.sample(min(EACH, len(rows)), random_state=0).to_dict("records")
    ]
    return [Flip(row["question"], row["text"], row["text_after"], gained) for row, gained in chosen]


def verdict_counts(night: Path) -> pd.DataFrame:
    """How often each verdict was given: in all rounds together, and to each checkpoint in the exam."""
    trained = [table for _, folder in rounds(night) if (table := _whole(folder, "score", "scores")) is not None]
    counts = {"training": pd.concat(trained)["verdict"].value_counts()} if trained else {}
    for who, name in WHO.items():
        if (table := read_table(night / "evaluate" / who, "evaluations")) is not None:
            counts[name] = table["verdict"].value_counts()
    return pd.DataFrame(counts).fillna(0).astype(int).sort_index()


def benchmark_verdicts(night: Path) -> dict[str, dict[str, int]]:
    """How often each verdict was given to the training completions of each benchmark, in all rounds together."""
    scored = [_verified(folder) for _, folder in rounds(night)]
    return count(
        pair for table in scored if len(table) for pair in zip(table["benchmark"], table["verdict"], strict=True)
    )


def verdicts_by_round(night: Path) -> dict[str, pd.DataFrame]:
    """The same round by round: for each benchmark, rounds × verdicts."""
    found: dict[str, dict[int, dict[str, int]]] = {}
    for number, folder in rounds(night):
        judged = _verified(folder)
        counts = count(zip(judged["benchmark"], judged["verdict"], strict=True)) if len(judged) else {}
        for benchmark, own in counts.items():
            found.setdefault(benchmark, {})[number] = own
    return {name: pd.DataFrame.from_dict(found[name], orient="index", columns=list(VERDICTS)) for name in sorted(found)}


def verdict_table(night: Path) -> pd.DataFrame:
    """The verdicts on each benchmark's training completions and on each part of the candidate's exam, where given."""
    rows = {f"{name}, training": own for name, own in benchmark_verdicts(night).items()}
    exam = read_table(night / "evaluate" / "candidate", "evaluations")
    if exam is not None:
        rows |= {
            f"{name}, exam": own for name, own in count(zip(exam["benchmark"], exam["verdict"], strict=True)).items()
        }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(VERDICTS))
    return table.loc[:, table.any()]


def ungraded_answers(night: Path) -> dict[str, tuple[int, int]]:
    """By part of the exam: how many of all three sitters' answers the grader failed on, and how many there are."""
    failed: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for who in WHO:
        exam = read_table(night / "evaluate" / who, "evaluations")
        if exam is not None:
            failed.update(exam["benchmark"][exam["verdict"] == FAILED])
            answers.update(exam["benchmark"])
    return {part: (failed[part], answers[part]) for part in answers}


def excluded_problems(night: Path) -> dict[str, list[str]]:
    """The problems that were left out because their own truth cannot be read, by benchmark or part of the exam."""
    found: dict[str, set[str]] = {}
    stages = [one / "select_prompts" for _, folder in rounds(night) for one in passes(folder)]
    stages += [night / "evaluate" / who for who in WHO]
    for stage in stages:
        for name, problems in (read_json(stage, "excluded.json") or {}).items():
            found.setdefault(name, set()).update(problems)
    return {name: sorted(problems) for name, problems in found.items() if problems}


def kind_history(night: Path) -> list[dict[str, tuple[float, float]]]:
    """For each round, by broad kind, the (fading) number of tries and of those solved."""
    history: list[dict[str, tuple[float, float]]] = []
    broad: dict[str, str] = {}
    for _, folder in rounds(night):
        known = [read_table(one / "score", "solve_rates") for one in passes(folder)]
        rates = next((table for table in reversed(known) if table is not None), None)
        prompts = _whole(folder, "select_prompts", "prompts")
        if rates is None or prompts is None:
            continue
        broad |= dict(zip(prompts["kind"], _broad_kinds(prompts), strict=True))
        sums = rates.groupby(rates["problem_id"].map(broad))[["tried", "solved"]].sum()
        history.append(dict(zip(sums.index, zip(sums["tried"], sums["solved"], strict=True), strict=True)))
    return history


def broad_kind(kind: str, problem_id: str, benchmark: str, level: str | None) -> str:
    """A problem's kind; where each problem is a kind of its own, its benchmark and level: `mbpp`, `math/Level 3`."""
    if not kind.startswith(problem_id):
        return kind
    return benchmark if level is None or pd.isna(level) else f"{benchmark}/{level}"


def read_json(folder: Path, name: str) -> Any:
    """A committed stage's JSON file; None where there is none."""
    file = _committed(folder, name)
    return json.loads(file.read_text()) if file else None


def read_table(folder: Path, name: str) -> pd.DataFrame | None:
    """A committed stage's table; None where there is none."""
    file = _committed(folder, f"{name}.parquet")
    return pd.read_parquet(file) if file else None


def _broad_kinds(rows: pd.DataFrame) -> list[str]:
    columns = (rows[name] for name in ("kind", "problem_id", "benchmark", "level"))
    return [broad_kind(*row) for row in zip(*columns, strict=True)]


def _scored(folder: Path) -> pd.DataFrame:
    """A round's scores with the question and kind of each; empty where the round did not come so far."""
    scores, prompts = _whole(folder, "score", "scores"), _whole(folder, "select_prompts", "prompts")
    if scores is None or prompts is None:
        return pd.DataFrame()
    asked = prompts[["problem_id", "group", "question", "kind", "benchmark", "level"]]
    return scores.merge(asked, on=["problem_id", "group"])


def _verified(folder: Path) -> pd.DataFrame:
    """Those of a round's scores that a verifier gave: of the owner's own prompts nothing is right or wrong."""
    scored = _scored(folder)
    return scored[scored["benchmark"].notna()] if len(scored) else scored


def _whole(folder: Path, stage: str, name: str) -> pd.DataFrame | None:
    """A table of a round, that of its refills below it; None where no such stage was committed."""
    tables = [table for one in passes(folder) if (table := read_table(one / stage, name)) is not None]
    return pd.concat(tables, ignore_index=True) if tables else None


def _committed(folder: Path, name: str) -> Path | None:
    """A stage's file, if the stage came to its end."""
    return folder / name if (folder / "manifest.json").exists() and (folder / name).exists() else None
