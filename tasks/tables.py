"""The tables between the stages: Parquet files with a declared schema, checked on write and on read."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from models.rollout import Rollout


def _schema(required: Mapping[str, pa.DataType], nullable: Mapping[str, pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, kind, nullable=False) for name, kind in required.items()]
    return pa.schema([*fields, *(pa.field(name, kind) for name, kind in nullable.items())])


TOKENS = pa.list_(pa.int32())
NUMBERED = {"problem_id": pa.string(), "group": pa.int32(), "sample": pa.int32()}

# Lessons of the day. `messages` and `responses` are JSON; `source` is the journal's file and line, or GENERATED;
# `night` the date of the night that took the line first, which is an earlier one where the lesson is learnt again.
# `learnt`: the champion has it as a lesson, and it comes along for the reward model alone; null is no.
GENERATED = "generated"
_ORIGIN = {"source": pa.string(), "night": pa.string()}
PREFERENCES = _schema(
    {"messages": pa.string(), "responses": pa.string(), "chosen": pa.int32(), "policy": pa.string()},
    {**_ORIGIN, "learnt": pa.bool_()},
)
CORRECTIONS = _schema(
    {"messages": pa.string(), "response": pa.string(), "correction": pa.string()}, {**_ORIGIN, "learnt": pa.bool_()}
)
FEEDBACK = _schema({"messages": pa.string(), "response": pa.string(), "value": pa.float64()}, _ORIGIN)
WORDS = _schema({"text": pa.string()}, _ORIGIN)
TRACES = _schema(
    {"messages": pa.string(), "response": pa.string(), "teacher": pa.string()},
    {"benchmark": pa.string(), "truth": pa.string(), **_ORIGIN},
)
HELD_OUT = _schema({"messages": pa.string(), "responses": pa.string(), "chosen": pa.int32()}, {})
QUARANTINE = _schema({"file": pa.string(), "line": pa.int64(), "reason": pa.string()}, {})

# `kind` is what the problem's solve rate is counted under, `group` its number in the round, `entry` the place in the
# configuration's list of the benchmark that it came from.
PROMPTS = _schema(
    {
        "problem_id": pa.string(),
        "group": pa.int32(),
        "messages": pa.string(),
        "prompt_token_ids": TOKENS,
        "question": pa.string(),
        "kind": pa.string(),
        "source": pa.string(),
    },
    {"benchmark": pa.string(), "truth": pa.string(), "level": pa.string(), "entry": pa.int32()},
)
OWNER_PROMPTS = _schema(
    {"problem_id": pa.string(), "messages": pa.string(), "prompt_token_ids": TOKENS, "question": pa.string()}, {}
)
ROLLOUTS = _schema(
    NUMBERED
    | {
        "prompt_token_ids": TOKENS,
        "token_ids": TOKENS,
        "sampler_logprobs": pa.list_(pa.float64()),
        "loss_mask": pa.list_(pa.bool_()),
        "finish_reason": pa.string(),
        "text": pa.string(),
        "policy_digest": pa.string(),
    },
    {},
)
SCORES = _schema(
    NUMBERED | {"verdict": pa.string(), "parts": pa.string(), "seconds": pa.float64()}, {"reward": pa.float64()}
)
LEARNED = _schema(NUMBERED, {"learned": pa.float64()})
ADVANTAGES = _schema(NUMBERED, {"advantage": pa.float64(), "token_advantages": pa.list_(pa.float64())})
EVALUATIONS = _schema(
    {
        "policy_digest": pa.string(),
        "benchmark": pa.string(),
        "problem_id": pa.string(),
        "sample": pa.int32(),
        "verdict": pa.string(),
        "question": pa.string(),
        "text": pa.string(),
        "tokens": pa.int32(),
        "finish_reason": pa.string(),
    },
    {"correct": pa.bool_(), "level": pa.string(), "subject": pa.string()},
)
SOLVE_RATES = _schema(
    {
        "problem_id": pa.string(),
        "benchmark": pa.string(),
        "night": pa.string(),
        "policy_digest": pa.string(),
        "tried": pa.float64(),
        "solved": pa.float64(),
    },
    {"level": pa.string()},
)


def write_table(file: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows that have exactly the schema's columns; raises ValueError or pa.ArrowException where they do not."""
    rows = list(rows)
    for row in rows:
        if unknown := row.keys() - set(schema.names):
            raise ValueError(f"{file.name}: no column {', '.join(sorted(unknown))}")
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    table.validate(full=True)
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"{file.name}: the column {field.name} may not be null")
    pq.write_table(table, file)


def read_table(file: Path, schema: pa.Schema) -> pd.DataFrame:
    """Reads a table whose columns and types are exactly the schema's; raises ValueError where they are not."""
    frame = _read(file, schema).to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
    for field in schema:
        if field.nullable and field.type == pa.string():  # pandas' own missing text is a NaN, which is no text
            frame[field.name] = frame[field.name].astype(object).where(frame[field.name].notna(), None)
    return frame


def table_rows(file: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """The same as rows, as `write_table` takes them."""
    return _read(file, schema).to_pylist()


def read_rollouts(file: Path) -> list[Rollout]:
    """The rollouts table as the trainer takes it."""
    return [Rollout(**row) for row in table_rows(file, ROLLOUTS)]


def _read(file: Path, schema: pa.Schema) -> pa.Table:
    table = pq.read_table(file)
    if not table.schema.equals(schema, check_metadata=False):
        raise ValueError(f"{file}: its columns are not those of this version: {table.schema.names}")
    return table


def write_rollouts(file: Path, rollouts: Iterable[Rollout]) -> None:
    """Writes the sampler's rollouts."""
    write_table(file, ROLLOUTS, [dataclasses.asdict(rollout) for rollout in rollouts])
