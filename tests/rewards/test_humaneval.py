"""HumanEval: both forms of an answer, random inputs, and helpers that no program can redefine."""

import gzip
import json
from pathlib import Path

from conf.schema import SandboxConfig
from rewards.humaneval import HumanEval
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem
from tests.rewards.datasets import HUMANEVAL as ROW
from tests.rewards.datasets import needs_data

HELPER = ROW["prompt"].partition("def decode")[0]
BODY = ROW["canonical_solution"]
WHOLE = f"def decode(s):\n{BODY}"


def problem(row: dict[str, str] = ROW) -> Problem:
    setup = row["prompt"].partition(f"def {row['entry_point']}")[0]
    test = f"{row['test']}\n\ncheck({row['entry_point']})\n"
    return Problem("humaneval/38", "humaneval", row["prompt"], ProgramTests(setup, (test,), row["entry_point"]).truth())


def verdicts(*completions: str, row: dict[str, str] = ROW) -> list[str]:
    benchmark = HumanEval(sandbox=SandboxConfig(seconds=1.0, memory_mb=256))
    return [score.verdict for score in benchmark.score([Attempt(problem(row), text) for text in completions])]


VERDICTS = {
    "a body": (BODY, "correct"),
    "a body that uses the helper": ("    for _ in s[1:]:\n        s = encode(s)\n    return s\n", "correct"),
    "a whole program": (WHOLE, "correct"),
    "the wrong body": ("    return s\n", "wrong"),
    "its own helper and the identity": ("def encode(s):\n    return s\n\ndef decode(s):\n    return s\n", "wrong"),
    "its own check": ("def check(candidate):\n    pass\n\ndef decode(s):\n    return s\n", "wrong"),
    "blank": ("\n    \n", "no_answer"),
}


def test_every_completion_has_its_verdict() -> None:
    found = verdicts(*(completion for completion, _ in VERDICTS.values()))
    assert dict(zip(VERDICTS, found, strict=True)) == {name: verdict for name, (_, verdict) in VERDICTS.items()}


def test_a_function_that_the_test_compares_with_itself() -> None:
    """As in HumanEval/33: it is the program's function on both sides, and literals decide in the end."""
    row = ROW | {
        "prompt": 'def order(l: list):\n    """Sorts."""\n',
        "entry_point": "order",
        "test": "def check(candidate):\n    assert tuple(candidate([3, 1])) == tuple(order([3, 1]))\n"
        "    assert tuple(candidate([2, 1])) == (1, 2)\n",
    }
    bodies = ["    return sorted(l)\n", "    return l\n", "    l.sort()\n    return l\n", "    return None\n"]
    assert verdicts(*bodies, row=row) == ["correct", "wrong", "correct", "wrong"]


def test_the_prompt() -> None:
    assert HumanEval().prompt(problem()) == (
        "Please provide a self-contained Python script that solves the following problem in a markdown code block:\n"
        f"```python\n{ROW['prompt'].strip()}\n```"
    )


def test_the_published_file_is_compressed(tmp_path: Path) -> None:
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(ROW).encode()))
    assert HumanEval(str(tmp_path)).references() == [(problem(), BODY)]
    assert json.loads(problem().truth)["setup"] == HELPER


@needs_data
def test_the_real_helpers_belong_to_the_judge() -> None:
    problems = HumanEval().problems("test")
    assert [each.problem_id for each in problems] == [f"humaneval/{index}" for index in range(164)]
    setups = [json.loads(each.truth)["setup"] for each in problems]
    assert [number for number, setup in enumerate(setups) if "def " in setup] == [10, 32, 38, 50]
    assert "def poly(xs: list, x: float):" in setups[32]
    assert "def find_zero" not in setups[32]
    cheats = {
        32: "def poly(xs, x):\n    return 0.0\n\ndef find_zero(xs):\n    return 0.0\n",
        38: "def encode_cyclic(s):\n    return s\n\ndef decode_cyclic(s):\n    return s\n",
        50: "def encode_shift(s):\n    return s\n\ndef decode_shift(s):\n    return s\n",
        33: "class Any(tuple):\n    __eq__ = lambda *_: True\n\ndef sort_third(l):\n    return Any()\n",
    }
    scores = HumanEval().score([Attempt(problems[number], program) for number, program in cheats.items()])
    assert [score.verdict for score in scores] == ["wrong"] * 4
