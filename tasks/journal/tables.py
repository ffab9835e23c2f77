"""The tables of what you taught: schemas and example rows, as in `tasks/tables.py`."""

import json

import pyarrow as pa

from tasks.tables import MESSAGES, Row, schema

ANSWERS = json.dumps(["12 - 8 = 4\n#### 4", "12 - 8 = 6\n#### 6", "The answer is 4."])

# What the owner taught. `messages` and `responses` are JSON. `source`: the journal's file and line, or GENERATED.
# `day`: the line's date. `lesson`: its name (`tasks/journal/read.py`). `held_out`: its conversation judges, and is
# never taught. Worked solutions that are not from the journal have no day and no lesson.
GENERATED = "generated"
_ORIGIN = {"source": pa.string(), "day": pa.string(), "lesson": pa.string()}
_SIDE = {"held_out": pa.bool_()}
_ORIGIN_EXAMPLE = {"source": "2026-11-20.jsonl:3", "day": "2026-11-20", "lesson": "4f1c0b7a2d9e83561ab0"}

PREFERENCES = schema(
    {
        "messages": pa.string(),
        "responses": pa.string(),
        "chosen": pa.int32(),
        "policy": pa.string(),
        **_ORIGIN,
        **_SIDE,
    },
    {},
)
PREFERENCES_EXAMPLE: Row = {
    "messages": MESSAGES,
    "responses": ANSWERS,
    "chosen": 0,
    "policy": "1c0d61067996bb4bd319",
    **_ORIGIN_EXAMPLE,
    "held_out": False,
}
CORRECTIONS = schema(
    {"messages": pa.string(), "response": pa.string(), "correction": pa.string(), **_ORIGIN, **_SIDE}, {}
)
CORRECTIONS_EXAMPLE: Row = {
    "messages": MESSAGES,
    "response": "12 - 8 = 6\n#### 6",
    "correction": "12 - 8 = 4\n#### 4",
    **_ORIGIN_EXAMPLE,
    "held_out": False,
}
FEEDBACK = schema({"messages": pa.string(), "response": pa.string(), "value": pa.float64(), **_ORIGIN, **_SIDE}, {})
FEEDBACK_EXAMPLE: Row = {
    "messages": MESSAGES,
    "response": "12 - 8 = 6\n#### 6",
    "value": -1.0,  # from −1 (bad) to 1 (good)
    **_ORIGIN_EXAMPLE,
    "held_out": False,
}
WORDS = schema({"text": pa.string(), **_ORIGIN}, {})
WORDS_EXAMPLE: Row = {"text": "To subtract 8 from 12, take away 2 first, then 6.", **_ORIGIN_EXAMPLE}
TRACES = schema(
    {"messages": pa.string(), "response": pa.string(), "teacher": pa.string()},
    {"benchmark": pa.string(), "truth": pa.string(), **_ORIGIN},
)
TRACES_EXAMPLE: Row = {
    "messages": MESSAGES,
    "response": "12 - 8 = 4\n#### 4",
    "teacher": "Qwen/Qwen3-8B",
    "benchmark": "arithmetic",
    "truth": "4",
    **_ORIGIN_EXAMPLE,
}
HELD_OUT = schema(
    {"messages": pa.string(), "responses": pa.string(), "chosen": pa.int32(), "generated": pa.bool_()}, {}
)
HELD_OUT_EXAMPLE: Row = {"messages": MESSAGES, "responses": ANSWERS, "chosen": 0, "generated": False}
QUARANTINE = schema({"file": pa.string(), "line": pa.int64(), "reason": pa.string()}, {})
QUARANTINE_EXAMPLE: Row = {"file": "2026-11-20.jsonl", "line": 4, "reason": "not valid JSON at column 27"}
