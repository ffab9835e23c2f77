"""Rows of the tables between stages, and committed folders with them, as earlier stages would leave them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from models.rollout import Rollout
from tasks.stage import Artifact, commit
from tasks.tables import PROMPTS, ROLLOUTS, SCORES, write_table

DAY = "2026-11-20"
WRONG = ("no", 0.0)  # an answer with its reward
RIGHT = ("right", 1.0)


def write_stage(
    folder: Path, tables: Mapping[str, tuple[pa.Schema, Iterable[Mapping[str, Any]]]], **files: Any
) -> Artifact:
    """Write the tables (by name) and further JSON files, and commit the folder.

    Rows of the owner's lessons get an origin where they have none.
    """
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    for name, (schema, rows) in tables.items():
        write_table(
            folder / f"{name}.parquet", schema, [_origin(name, n, schema) | row for n, row in enumerate(rows, 1)]
        )
    return commit(folder, folder.name, {}, 1.0)


def _origin(name: str, number: int, schema: pa.Schema) -> dict[str, Any]:
    """What the freeze says of a line: where it is, and that it is no judge."""
    origin = {"source": f"{DAY}.jsonl:{number}", "day": DAY, "lesson": f"{name} {number}", "held_out": False}
    return {key: value for key, value in origin.items() if key in schema.names and not schema.field(key).nullable}


def write_round(folder: Path, answers: dict[str, list[tuple[str, float | None]]], **changes: Any) -> None:
    """Write a round's prompts, rollouts and scores; `answers` has each problem's answers with their rewards."""
    prompts = [
        prompt(name, group, **changes) | {"messages": json.dumps([{"role": "user", "content": name}])}
        for group, name in enumerate(answers)
    ]
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
