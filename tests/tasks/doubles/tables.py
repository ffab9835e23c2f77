"""Rows of the tables between stages, and committed folders with them, as earlier stages would leave them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from models.rollout import Rollout
from tasks.journal.tables import HELD_OUT
from tasks.stage import Artifact, Stage, commit
from tasks.tables import PROMPTS, ROLLOUTS, SCORES, write_table

DAY = "2026-11-20"
WRONG = ("no", 0.0)  # an answer with its reward
RIGHT = ("right", 1.0)


def write_stage(
    folder: Path,
    tables: Mapping[str, tuple[pa.Schema, Iterable[Mapping[str, Any]]]] | None = None,
    seconds: float = 1.0,
    figures: Mapping[str, float] | None = None,
    **files: Any,
) -> Artifact:
    """Write the tables (by name) and further JSON files, and commit the folder.

    Rows of the owner's lessons get an origin where they have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    for name, (schema, rows) in (tables or {}).items():
        write_table(
            folder / f"{name}.parquet", schema, [_origin(name, n, schema) | row for n, row in enumerate(rows, 1)]
        )
    return commit(folder, folder.name, {}, seconds, figures)


def run_stage(stage: Stage, folder: Path, **arguments: Any) -> Artifact:
    """Call a stage's function, without a server; return its folder, which is not committed."""
    folder.mkdir(parents=True, exist_ok=True)
    stage.write(folder, **arguments)
    return Artifact(folder=folder, digest=folder.name)


def _origin(name: str, number: int, schema: pa.Schema) -> dict[str, Any]:
    """What the freeze says of a line: where it is, and that it is no judge."""
    origin = {"source": f"{DAY}.jsonl:{number}", "day": DAY, "lesson": f"{name} {number}", "held_out": False}
    return {key: value for key, value in origin.items() if key in schema.names and not schema.field(key).nullable}


def write_round(folder: Path, answers: dict[str, list[tuple[str, float | None]]], **changes: Any) -> None:
    """Write a round's prompts, with these changes, rollouts and scores.

    `answers` has each problem's answers with their rewards.
    """
    prompts = [prompt(name, group) | {"messages": messages(name)} | changes for group, name in enumerate(answers)]
    rows = [
        (name, group, sample, text, reward)
        for group, (name, given) in enumerate(answers.items())
        for sample, (text, reward) in enumerate(given)
    ]
    scores = [score(name, group, sample, reward) for name, group, sample, _, reward in rows]
    rollouts = [rollout(name, group, sample, text) for name, group, sample, text, _ in rows]
    write_stage(folder / "select_prompts", {"prompts": (PROMPTS, prompts)})
    write_stage(folder / "score", {"scores": (SCORES, scores)})
    write_stage(folder / "sample", {"rollouts": (ROLLOUTS, rollouts)})


def write_held_out(folder: Path, picks: Iterable[tuple[str, list[str], int]]) -> Artifact:
    """Write the held-out picks of a night's fit: what was asked, the answers, and the number of the chosen one."""
    rows = [
        {"messages": messages(asked), "responses": json.dumps(answers), "chosen": chosen, "generated": False}
        for asked, answers, chosen in picks
    ]
    return write_stage(folder / "fit_reward_model", {"held_out": (HELD_OUT, rows)})


def messages(*turns: str) -> str:
    """Return turns of the user and the assistant, in turn, as the tables have them."""
    return json.dumps([{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns)])


def preference(asked: str, responses: list[str], chosen: int, **changes: Any) -> dict[str, Any]:
    """Return a row of the preferences table, without its origin."""
    shown = {"messages": messages(asked), "responses": json.dumps(responses)}
    return {**shown, "chosen": chosen, "policy": "cafe42", **changes}


def correction(asked: str, response: str, better: str, **changes: Any) -> dict[str, Any]:
    """Return a row of the corrections table, without its origin."""
    return {"messages": messages(asked), "response": response, "correction": better, **changes}


def feedback(asked: str, response: str, value: float, **changes: Any) -> dict[str, Any]:
    """Return a row of the feedback table, without its origin."""
    return {"messages": messages(asked), "response": response, "value": value, **changes}


def lesson_table(*rows: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows of the owner's lessons as a table; lessons without an origin are numbered from 0."""
    origin = {"source": f"{DAY}.jsonl:1", "day": DAY, "held_out": False, "unfinished": None}
    return pd.DataFrame([{**origin, "lesson": str(number), **row} for number, row in enumerate(rows)])


def prompt(
    problem_id: str,
    group: int,
    truth: str = "12",
    *,
    benchmark: str = "arithmetic",
    kind: str = "arithmetic/1/plus",
    level: str | None = "1",
    entry: int = 0,
    question: str = "How many?",
) -> dict[str, Any]:
    """Return a row of the prompts table."""
    return {
        "problem_id": problem_id,
        "group": group,
        "messages": "[]",
        "prompt_token_ids": [1, 2, 3],
        "question": question,
        "kind": kind,
        "source": "benchmark",
        "benchmark": benchmark,
        "truth": truth,
        "level": level,
        "entry": entry,
    }


def rollout(problem_id: str, group: int, sample: int, text: str) -> dict[str, Any]:
    """Return a row of the rollouts table."""
    tokens = list(text.encode())
    length = len(tokens)
    made = Rollout(
        problem_id, group, sample, [1, 2, 3], tokens, [-0.5] * length, [True] * length, "stop", text, "cafe42"
    )
    return {name: getattr(made, name) for name in ROLLOUTS.names}


def score(problem_id: str, group: int, sample: int, reward: float | None) -> dict[str, Any]:
    """Return a row of the scores table."""
    verdict = "grader_failed" if reward is None else "correct" if reward == 1 else "wrong"
    return {
        "problem_id": problem_id,
        "group": group,
        "sample": sample,
        "verdict": verdict,
        "parts": "{}",
        "seconds": 0.1,
        "reward": reward,
    }


def solve_rate(kind: str, tried: float, solved: float, *, level: str | None = "1") -> dict[str, Any]:
    """Return a row of the solve rates table."""
    return {
        "problem_id": kind,
        "benchmark": kind.split("/")[0],
        "night": "2026-11-20",
        "policy_digest": "cafe42",
        "tried": tried,
        "solved": solved,
        "level": level,
    }
