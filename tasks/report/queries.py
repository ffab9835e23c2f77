"""What the report shows of a night's folder, as tables: answers, solve rates, verdicts, exams.

Only committed stages are read; what a night does not have is empty.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rewards.episodes import texts_of
from tasks.evaluation.metrics import ExamFigures, night_figures, ranking_accuracies
from tasks.evaluation.outcomes import outcomes
from tasks.evaluation.statistics import Accuracy
from tasks.layout import MANIFEST, QUIZ, passes, rounds
from tasks.rollouts.curriculum import arm_of
from tasks.rollouts.verdicts import FAILED, VERDICTS, count
from tasks.stage import committed

MODELS = {"champion": "champion", "distilled": "after the lessons", "candidate": "candidate"}  # as people read them
COMPLETION = ["problem_id", "group", "sample"]
EXAM_ANSWER = ["benchmark", "problem_id", "sample"]
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
    """An exam problem that only the candidate solved (`gained`), or only the champion, with both answers."""

    question: str
    before: str
    after: str
    gained: bool


@dataclass(frozen=True)
class ExamDetails:
    """What an exam shows besides who won; models go by the names that people read.

    `figures`: by part and model. `tries`: the k of all pass@k. `kinds`: accuracies by model, for each part's level or
    subject. `picks`: the share of the owner's held-out picks that each model ranks first.
    """

    figures: Mapping[tuple[str, str], ExamFigures]
    tries: tuple[int, ...]
    kinds: Mapping[tuple[str, str], Mapping[str, Accuracy]]
    picks: Mapping[str, Accuracy]


def exam_details(night: Path) -> ExamDetails:
    """Return the details of a night's exam; empty without one."""
    exams = {MODELS[role]: parts for role, parts in night_figures(night).items()}
    names = dict.fromkeys(part for parts in exams.values() for part in parts)
    figures = {(part, model): parts[part] for part in names for model, parts in exams.items() if part in parts}
    kinds: dict[tuple[str, str], dict[str, Accuracy]] = {}
    for (part, model), exam in figures.items():
        levels = {f"level {name}" if name.isdecimal() else name: known for name, known in exam.by_level.items()}
        for kind, accuracy in (*levels.items(), *exam.by_subject.items()):
            kinds.setdefault((part, kind), {})[model] = accuracy
    tries = tuple(sorted({k for exam in figures.values() for k in exam.pass_at}))
    return ExamDetails(figures, tries, kinds, {MODELS[role]: own for role, own in ranking_accuracies(night).items()})


def round_metrics(night: Path) -> pd.DataFrame:
    """Return the rounds' figures, one row a round; NaN for what is missing or not finite."""
    figures = {number: read_json(folder / "checkpoint", "metrics.json") or {} for number, folder in rounds(night)}
    table = pd.DataFrame.from_dict(figures, orient="index").sort_index()
    return table.apply(pd.to_numeric, errors="coerce").replace([math.inf, -math.inf], math.nan)


def quiz_accuracies(night: Path) -> dict[int, float]:
    """Return the share of graded quiz answers that is correct, by round."""
    tables = {number: read_table(folder / "quiz", "evaluations") for number, folder in rounds(night)}
    graded = {number: outcomes(table).dropna() for number, table in tables.items() if table is not None}
    return {number: float(each.mean()) for number, each in graded.items() if len(each)}


def quiz_results(night: Path) -> dict[str, dict[str, Any]]:
    """Return the quizzes before and after lessons and rounds in the order in which they were taken: accuracy and n.

    By name: `start`, then the lesson or block of rounds that the quiz follows.
    """
    taken = [artifact for folder in (night / QUIZ).glob("*") if (artifact := committed(folder))]
    taken.sort(key=lambda artifact: (artifact.folder / MANIFEST).stat().st_mtime)
    tables = {each.folder.name: read_table(each.folder, "evaluations") for each in taken}
    graded = {name: outcomes(table).dropna() for name, table in tables.items() if table is not None}
    return {name: {"accuracy": float(each.mean()), "n": len(each)} for name, each in graded.items() if len(each)}


def lesson_losses(night: Path) -> pd.Series:
    """Return the loss of every step of all lessons on worked solutions, in their order."""
    curves = [file.parent for file in night.glob("*distill*/curve.json")]
    curves.sort(key=lambda folder: (int("".join(filter(str.isdigit, folder.name)) or 1), folder.name))
    losses = [step["loss"] for folder in curves for step in read_json(folder, "curve.json") or []]
    return pd.Series(losses, index=range(1, len(losses) + 1), dtype=float)


def solve_rates(night: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return the share of correct completions, kinds × rounds (NaN: none drawn), and the completions of each kind.

    Of episodes it is their mean value.
    """
    scored = [_verified(folder).assign(round=number) for number, folder in rounds(night)]
    rows = pd.concat([table for table in scored if len(table)] or [pd.DataFrame({"kind": []})])
    if rows.empty:
        return pd.DataFrame(), pd.Series(dtype=float)
    rows["kind"] = _broad_kinds(rows)
    solved = [
        json.loads(parts).get("value", verdict == "correct")
        for parts, verdict in zip(rows.parts, rows.verdict, strict=True)
    ]
    rows["solved"] = pd.Series(solved, dtype=float).set_axis(rows.index).where(rows["verdict"] != FAILED)
    rates = rows.pivot_table(index="kind", columns="round", values="solved", aggfunc="mean")
    rates = rates.dropna(how="all")
    return rates, rows["kind"].value_counts().reindex(rates.index)


def sampled_answers(night: Path) -> list[Answer]:
    """Return ten completions of the last round, if possible five of them correct and each of another problem."""
    for _, folder in reversed(rounds(night)):
        rollouts, rows = round_table(folder, "sample", "rollouts"), _scored(folder)
        if rollouts is None or rows.empty:
            continue
        rows = rows.merge(rollouts[[*COMPLETION, "text", "finish_reason"]], on=COMPLETION).sample(
            frac=1, random_state=0
        )
        rows = rows.loc[rows["problem_id"].duplicated().sort_values(kind="stable").index]
        right, wrong = rows[rows["verdict"] == "correct"], rows[rows["verdict"] != "correct"]
        count_right = min(len(right), max(EACH, 2 * EACH - len(wrong)))
        chosen = pd.concat([right.head(count_right), wrong.head(2 * EACH - count_right)]).astype({"reward": object})
        chosen["reward"] = chosen["reward"].where(chosen["reward"].notna(), None)
        return [
            Answer(row["question"], _readable(row), row["verdict"], row["reward"], row["finish_reason"])
            for row in chosen.to_dict("records")
        ]
    return []


def _readable(row: Mapping[Any, Any]) -> str:
    """Return a completion as it was written; of an episode one turn after the other."""
    return "\n".join(texts_of(row["text"])) if "turns" in json.loads(row["parts"]) else row["text"]


def flipped_answers(night: Path) -> list[Flip]:
    """Return up to five exam problems that only the candidate solved, and five that only the champion solved."""
    before, after = (read_table(night / "evaluate" / role, "evaluations") for role in ("champion", "candidate"))
    if before is None or after is None:
        return []
    before, after = (table[table["value"].isna()] for table in (before, after))  # an episode has a picture of its own
    both = before.merge(after, on=EXAM_ANSWER, suffixes=("", "_after")).dropna(subset=["correct", "correct_after"])
    was, is_now = both["correct"].astype(bool), both["correct_after"].astype(bool)
    chosen = [
        (row, gained)
        for rows, gained in ((both[~was & is_now], True), (both[was & ~is_now], False))
        for row in rows.sample(min(EACH, len(rows)), random_state=0).to_dict("records")
    ]
    return [Flip(row["question"], row["text"], row["text_after"], gained) for row, gained in chosen]


def verdict_counts(night: Path) -> pd.DataFrame:
    """Return how often each verdict was given: in all rounds together, and to each model in the exam."""
    trained = [table for _, folder in rounds(night) if (table := round_table(folder, "score", "scores")) is not None]
    counts = {"training": pd.concat(trained)["verdict"].value_counts()} if trained else {}
    for role, name in MODELS.items():
        if (table := read_table(night / "evaluate" / role, "evaluations")) is not None:
            counts[name] = table["verdict"].value_counts()
    return pd.DataFrame(counts).fillna(0).astype(int).sort_index()


def benchmark_verdicts(night: Path) -> dict[str, dict[str, int]]:
    """Return how often each verdict was given to the training completions of each benchmark, over all rounds."""
    tables = verdicts_by_round(night)
    return {name: {str(verdict): int(n) for verdict, n in table.sum().items()} for name, table in tables.items()}


def verdicts_by_round(night: Path) -> dict[str, pd.DataFrame]:
    """Return the verdicts on training completions: for each benchmark, rounds × verdicts."""
    found: dict[str, dict[int, dict[str, int]]] = {}
    for number, folder in rounds(night):
        judged = _verified(folder)
        counts = count(zip(judged["benchmark"], judged["verdict"], strict=True)) if len(judged) else {}
        for benchmark, own in counts.items():
            found.setdefault(benchmark, {})[number] = own
    return {name: pd.DataFrame.from_dict(found[name], orient="index", columns=list(VERDICTS)) for name in sorted(found)}


def verdict_table(night: Path) -> pd.DataFrame:
    """Return the verdicts on each benchmark's training completions and on each part of the candidate's exam."""
    rows = {f"{name}, training": own for name, own in benchmark_verdicts(night).items()}
    exam = read_table(night / "evaluate" / "candidate", "evaluations")
    if exam is not None:
        rows |= {
            f"{name}, exam": own for name, own in count(zip(exam["benchmark"], exam["verdict"], strict=True)).items()
        }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(VERDICTS))
    return table.loc[:, table.any()]


def ungraded_answers(night: Path) -> dict[str, tuple[int, int]]:
    """Return by part of the exam how many answers the grader failed on, and how many there are, over all models."""
    failed: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for role in MODELS:
        exam = read_table(night / "evaluate" / role, "evaluations")
        if exam is not None:
            failed.update(exam["benchmark"][exam["verdict"] == FAILED])
            answers.update(exam["benchmark"])
    return {part: (failed[part], answers[part]) for part in answers}


def excluded_problems(night: Path) -> dict[str, list[str]]:
    """Return the problems that were left out because their truth cannot be parsed, by benchmark or part of the exam."""
    found: dict[str, set[str]] = {}
    stages = [one / "select_prompts" for _, folder in rounds(night) for one in passes(folder)]
    stages += [night / "evaluate" / role for role in MODELS]
    for stage in stages:
        for name, problems in (read_json(stage, "excluded.json") or {}).items():
            found.setdefault(name, set()).update(problems)
    return {name: sorted(problems) for name, problems in found.items() if problems}


def kind_history(night: Path) -> list[dict[str, tuple[float, float]]]:
    """Return for each round, by broad kind, the (decayed) number of tries and of those solved."""
    history: list[dict[str, tuple[float, float]]] = []
    broad: dict[str, str] = {}
    for _, folder in rounds(night):
        known = [read_table(one / "score", "solve_rates") for one in passes(folder)]
        rates = next((table for table in reversed(known) if table is not None), None)
        prompts = round_table(folder, "select_prompts", "prompts")
        if rates is None or prompts is None:
            continue
        broad |= dict(zip(prompts["kind"], _broad_kinds(prompts), strict=True))
        sums = rates.groupby(rates["problem_id"].map(broad))[["tried", "solved"]].sum()
        history.append(dict(zip(sums.index, zip(sums["tried"], sums["solved"], strict=True), strict=True)))
    return history


def read_json(folder: Path, name: str) -> Any:
    """Return a committed stage's JSON file; None if there is none."""
    file = _committed(folder, name)
    return json.loads(file.read_text()) if file else None


def read_table(folder: Path, name: str) -> pd.DataFrame | None:
    """Return a committed stage's table; None if there is none."""
    file = _committed(folder, f"{name}.parquet")
    return pd.read_parquet(file) if file else None


def _broad_kinds(rows: pd.DataFrame) -> list[str]:
    columns = (rows[name] for name in ("kind", "problem_id", "benchmark", "level"))
    return [arm_of(*row) for row in zip(*columns, strict=True)]


def _scored(folder: Path) -> pd.DataFrame:
    """Return a round's scores with their problems; empty if the round was not scored."""
    scores, prompts = round_table(folder, "score", "scores"), round_table(folder, "select_prompts", "prompts")
    if scores is None or prompts is None:
        return pd.DataFrame()
    asked = prompts[["problem_id", "group", "question", "kind", "benchmark", "level"]]
    return scores.merge(asked, on=["problem_id", "group"])


def _verified(folder: Path) -> pd.DataFrame:
    """Return the scores that a verifier gave: an answer to the owner's own prompts is neither right nor wrong."""
    scored = _scored(folder)
    return scored[scored["benchmark"].notna()] if len(scored) else scored


def round_table(folder: Path, stage: str, name: str) -> pd.DataFrame | None:
    """Return a table of a round and its refills; None if no such stage was committed."""
    tables = [table for one in passes(folder) if (table := read_table(one / stage, name)) is not None]
    return pd.concat(tables, ignore_index=True) if tables else None


def _committed(folder: Path, name: str) -> Path | None:
    return folder / name if (folder / "manifest.json").exists() and (folder / name).exists() else None
