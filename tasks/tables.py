"""The tables passed between stages: Parquet files with a declared schema that is checked on every write and read.

Each schema has an example row. Most of these rows follow one problem, "What is 12 - 8?", from the owner's line in the
journal (see `tasks/journal/tables.py`) to the prompt, one of its sixteen completions, the score and the advantage.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from models.rollout import Rollout

Row = dict[str, Any]


def table(required: Row, nullable: Row | None = None) -> tuple[pa.Schema, Row]:
    """Return a table's schema and its example row, given an example value for each `required` and `nullable` column.

    A column gets its type from the value (int32 for an int). To make the example null, pass an Arrow type as the value.
    """
    example = required | (nullable or {})
    fields = [pa.field(name, _kind(value), nullable=name not in required) for name, value in example.items()]
    return pa.schema(fields), {
        name: None if isinstance(value, pa.DataType) else value for name, value in example.items()
    }


def _kind(value: Any) -> pa.DataType:
    if isinstance(value, pa.DataType):
        return value
    if isinstance(value, list):
        return pa.list_(_kind(value[0]))
    return {bool: pa.bool_(), int: pa.int32(), float: pa.float64(), str: pa.string()}[type(value)]


_PROMPT = "Solve the problem below. Give the steps, then the answer as #### <number> on a last line.\nWhat is 12 - 8?"
MESSAGES = json.dumps([{"role": "user", "content": _PROMPT}])
_PROMPT_TOKEN_IDS = [
    *(1, 9690, 198, 2, 198, 1, 4093, 198, 1780, 314, 216, 33, 34, 731, 216, 40, 47, 198, 26533, 260),
    *(3301, 28, 965, 260, 2988, 335, 253, 1596, 1761, 347, 32713, 2067, 7979, 19369, 2, 198, 1, 520, 9531, 198),
]
# The columns that every table of completions begins with.
NUMBERED: Row = {"problem_id": "arithmetic/1/minus/12 - 8", "group": 22, "sample": 2}

# `group`: the prompt's number in the round. `kind`: the name under which the problem's solve rate is tracked. `entry`:
# the benchmark's index in the configuration; null, like `benchmark`, `truth` and `level`, for the owner's own prompts.
# `hint`: the start of a solution, appended to the prompt; null without a hint. `solution`: a whole solution, which
# replaces the last completion of the prompt; null if no completion is replaced.
PROMPTS, PROMPTS_EXAMPLE = table(
    {
        "problem_id": "arithmetic/1/minus/12 - 8",
        "group": 22,
        "messages": MESSAGES,
        "prompt_token_ids": _PROMPT_TOKEN_IDS,
        "question": "What is 12 - 8?",
        "kind": "arithmetic/1/minus",
        "source": "benchmark",
    },
    {
        "benchmark": "arithmetic",
        "truth": "4",
        "level": "1",
        "entry": 0,
        "hint": pa.string(),
        "solution": pa.string(),
    },
)
# A text that the student wrote when asked for a problem in self-play. `group`: the number of that request.
# `problem_id`, `kind`: those of the proposed problem. `asked_group`: the group that answers it; else null.
PROPOSALS, PROPOSALS_EXAMPLE = table(
    {"group": 0, "sample": 2, "text": "12 - 8", "verdict": "admitted"},
    {"problem_id": "arithmetic/1/minus/12 - 8", "kind": "arithmetic/1/minus", "asked_group": 9},
)
OWNER_PROMPTS, OWNER_PROMPTS_EXAMPLE = table(
    {
        "problem_id": "owner/8c1f0a52d7e94b36a1c0",
        "messages": MESSAGES,
        "prompt_token_ids": _PROMPT_TOKEN_IDS,
        "question": _PROMPT,
    }
)

# One completion, as the sampled token ids, including the end token. See `models/rollout.py`.
ROLLOUTS, ROLLOUTS_EXAMPLE = table(
    {
        **NUMBERED,
        "prompt_token_ids": _PROMPT_TOKEN_IDS,
        "token_ids": [33, 34, 731, 216, 40, 446, 216, 36, 198, 1229, 216, 36, 2],
        "sampler_logprobs": [
            *(-0.0008, -0.0002, -0.0042, -0.0, -0.0, -0.0006, -0.0005, -0.798, -0.0092, -0.006, 0.0, -0.0, -0.0007)
        ],
        "loss_mask": [True] * 13,
        "finish_reason": "stop",
        "text": "12 - 8 = 4\n#### 4",
        "policy_digest": "a1d06c1306264fd923bb",
    },
    {"windows": pa.list_(pa.list_(pa.int32()))},
)

# `reward` is null if the grader itself failed. `parts` is JSON.
SCORES, SCORES_EXAMPLE = table(
    {**NUMBERED, "verdict": "correct", "parts": '{"correct": 1.0, "format": 1.0}', "seconds": 4e-06}, {"reward": 1.0}
)
# `learned`: the rating by the reward model or the judge; null if the completion could not be rated, or if its prompt is
# not the owner's.
LEARNED, LEARNED_EXAMPLE = table(NUMBERED, {"learned": 0.83})
# `advantage`: here the reward minus the group's mean (8 of 16 completions are correct); null if the completion has no
# reward, is masked, or is not trained on. `token_advantages`: from a teacher or from credit by turn; null otherwise.
ADVANTAGES, ADVANTAGES_EXAMPLE = table(NUMBERED, {"advantage": 0.5, "token_advantages": pa.list_(pa.float64())})

# One turn of an episode; the tokens themselves are in the rollouts table. `first`: the index of the turn's first token
# in the episode's `token_ids`. `tokens`: the turn's number of tokens. `state_key`: a digest of what the policy saw.
# `value`: the value of the state (see `models/advantages.py`); null, like `advantage`, until the turns are credited.
TURNS, TURNS_EXAMPLE = table(
    {
        **NUMBERED,
        "problem_id": "ants/0/17",
        "turn": 2,
        "agent": 0,
        "first": 60,
        "tokens": 6,
        "state_key": "0a1b8f3c55e2d4079b61",
        "action": "MOVE left",
        "valid": True,
        "reward": 0.198,
        "parts": '{"shaping": 0.198}',
    },
    {"value": 0.71, "advantage": 0.09},
)

# `benchmark`: the name of the exam part. `correct`: null if the grader failed. For an episode, `value` is what it
# achieved, `turns` the number of its turns, `valid` the share of valid turns, and `text` a JSON list of its answers.
EVALUATIONS, EVALUATIONS_EXAMPLE = table(
    {
        "policy_digest": "bed2fd41c76f8619f9d0",
        "benchmark": "arithmetic-1-2",
        "problem_id": "arithmetic/1/minus/15 - 7",  # never a practised problem
        "sample": 0,
        "verdict": "wrong",
        "question": "What is 15 - 7?",
        "text": "15 - 7 = 4\n#### 4",
        "tokens": 13,
        "finish_reason": "stop",
    },
    {
        "correct": False,
        "level": "1",
        "subject": pa.string(),
        "value": pa.float64(),
        "turns": pa.int32(),
        "valid": pa.float64(),
    },
)
# Attempts at problems of one kind in all rounds and nights; older attempts have less weight. `problem_id`: the kind.
SOLVE_RATES, SOLVE_RATES_EXAMPLE = table(
    {
        "problem_id": "arithmetic/1/minus",
        "benchmark": "arithmetic",
        "night": "2026-11-21",
        "policy_digest": "a1d06c1306264fd923bb",
        "tried": 23.84,
        "solved": 8.0,
    },
    {"level": "1"},
)


def write_table(file: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, which may omit nullable columns. Raises ValueError or pa.ArrowException if a row does not fit."""
    rows = [dict(row) for row in rows]
    for row in rows:
        if unknown := row.keys() - set(schema.names):
            raise ValueError(f"{file.name}: no column {', '.join(sorted(unknown))}")
    table = pa.Table.from_pylist(rows, schema=schema)
    table.validate(full=True)
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise ValueError(f"{file.name}: the column {field.name} may not be null")
    pq.write_table(table, file)


def read_table(file: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a table. Raises ValueError if its columns and their types are not exactly those of the schema."""
    frame = _read(file, schema).to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get)
    for field in schema:
        if field.nullable and field.type == pa.string():  # pandas would turn missing strings into NaN
            frame[field.name] = frame[field.name].astype(object).where(frame[field.name].notna(), None)
    return frame


def unfinished(listed: object) -> list[str]:
    """Return the answers that a row's column `unfinished` lists."""
    return json.loads(listed) if isinstance(listed, str) else []


def table_rows(file: Path, schema: pa.Schema) -> list[Row]:
    """Read a table as a list of rows, in the form that `write_table` takes."""
    return _read(file, schema).to_pylist()


def completion_key(rollout: Rollout) -> Row:
    """Return a rollout's problem id, group and sample: the columns that every table of completions begins with."""
    return {name: getattr(rollout, name) for name in NUMBERED}


def read_rollouts(file: Path) -> list[Rollout]:
    """Read a rollouts table as the trainer's `Rollout` objects."""
    return [Rollout(**row) for row in table_rows(file, ROLLOUTS)]


def write_rollouts(file: Path, rollouts: Iterable[Rollout]) -> None:
    """Write rollouts as a rollouts table."""
    write_table(file, ROLLOUTS, [dataclasses.asdict(rollout) for rollout in rollouts])


def _read(file: Path, schema: pa.Schema) -> pa.Table:
    table = pq.read_table(file)
    if not table.schema.equals(schema, check_metadata=False):
        raise ValueError(f"{file}: its columns are not those of this version: {table.schema.names}")
    return table
