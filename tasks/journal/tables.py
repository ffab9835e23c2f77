"""The tables of what the owner taught: schemas and example rows, as in `tasks/tables.py`."""

import json

import pyarrow as pa

from tasks.tables import MESSAGES, Row, table

# What the owner taught. `messages` and `responses` are JSON. `source`: the journal's file and line, or GENERATED.
# `day`: the line's date. `lesson`: the lesson's name (`tasks/journal/read.py`). `held_out`: whether the conversation is
# used only for judging and never taught. `unfinished`: a JSON list of the answers that were stopped or cut off, so that
# they have no end token; null if all ended. Worked solutions from outside the journal have no day and no lesson.
GENERATED = "generated"
_ORIGIN: Row = {"source": "2026-11-20.jsonl:3", "day": "2026-11-20", "lesson": "4f1c0b7a2d9e83561ab0"}
_CUT: Row = {"unfinished": pa.string()}
_WRONG = "12 - 8 = 6\n#### 6"

PREFERENCES, PREFERENCES_EXAMPLE = table(
    {
        "messages": MESSAGES,
        "responses": json.dumps(["12 - 8 = 4\n#### 4", _WRONG, "The answer is 4."]),
        "chosen": 0,
        "policy": "1c0d61067996bb4bd319",
        **_ORIGIN,
        "held_out": False,
    },
    _CUT,
)
CORRECTIONS, CORRECTIONS_EXAMPLE = table(
    {"messages": MESSAGES, "response": _WRONG, "correction": "12 - 8 = 4\n#### 4", **_ORIGIN, "held_out": False},
    _CUT,
)
FEEDBACK, FEEDBACK_EXAMPLE = table(  # `value`: from −1 (bad) to 1 (good)
    {"messages": MESSAGES, "response": _WRONG, "value": -1.0, **_ORIGIN, "held_out": False}, _CUT
)
WORDS, WORDS_EXAMPLE = table({"text": "To subtract 8 from 12, take away 2 first, then 6.", **_ORIGIN})
TRACES, TRACES_EXAMPLE = table(
    {"messages": MESSAGES, "response": "12 - 8 = 4\n#### 4", "teacher": "Qwen/Qwen3-8B"},
    {"benchmark": "arithmetic", "truth": "4", **_ORIGIN},
)
HELD_OUT, HELD_OUT_EXAMPLE = table(
    {"messages": MESSAGES, "responses": PREFERENCES_EXAMPLE["responses"], "chosen": 0, "generated": False}, _CUT
)
QUARANTINE, QUARANTINE_EXAMPLE = table({"file": "2026-11-20.jsonl", "line": 4, "reason": "not valid JSON at column 27"})
