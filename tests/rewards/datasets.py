"""Rows of the dataset benchmarks, as their files and the hub hold them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

needs_data = pytest.mark.skipif(
    "NIGHTSCHOOL_DATA" not in os.environ, reason="NIGHTSCHOOL_DATA is not set: no real data"
)

ADD_ONE = "def add_one(x):\n    return x + 1\n"
GSM8K = {"question": "How many eggs are left?", "answer": "9 * 2 = 18\n#### 18"}
MATH = {"problem": "How many?", "level": "Level 3", "type": "Algebra", "solution": r"It is \boxed{5}."}
MBPP = {
    "task_id": 601,
    "text": "Write a function to add one.",
    "code": ADD_ONE,
    "test_setup_code": "",
    "test_list": ["assert add_one(1) == 2", "assert add_one(2) == 3"],
    "challenge_test_list": ["assert add_one(-1) == 0"],
}
HUMANEVAL = {
    "task_id": "HumanEval/38",
    "prompt": "import math\n\n\ndef encode(s: str):\n    return s[1:] + s[:1]\n\n\n"
    'def decode(s: str):\n    """Takes a text encoded with encode, returns the decoded one."""\n',
    "entry_point": "decode",
    "canonical_solution": "    return s[-1:] + s[:-1]\n",
    "test": "\n\nMETADATA = {}\n\n\ndef check(candidate):\n    from random import choice\n    import string\n\n"
    "    for _ in range(50):\n        str = ''.join(choice(string.ascii_lowercase) for i in range(12))\n"
    "        assert candidate(encode(str)) == str\n",
}
TRIVIAQA = {"question": "Where was she born?", "question_id": "tc_2", "answer": {"aliases": ["York"], "value": "York"}}


def write_rows(path: Path, *rows: Any) -> str:
    """Write rows as JSONL. Returns the folder, a benchmark's `source`."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path.parent)


def write_gsm8k(folder: Path, count: int, *splits: str, question: str = "How many?", answer: str = "") -> Path:
    """Write GSM8K's files, by default both. Each question ends with its number: the answer, unless one is given."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"question": f"{question} {n}", "answer": f"#### {answer or n}"} for n in range(count)]
    for split in splits or ("train", "test"):
        write_rows(folder / f"{split}.jsonl", *rows)
    return folder
