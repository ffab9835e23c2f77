"""HumanEval: its data, both forms of an answer, and that every reference passes its own tests while no stub does."""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import InputError
from rewards.humaneval import HumanEval
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem, Score

needs_data = pytest.mark.skipif(
    not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no HumanEval file to read"
)
HELPER = "import math\n\n\ndef encode(s: str):\n    return s[1:] + s[:1]\n\n\n"
ROW = {
    "task_id": "HumanEval/38",
    "prompt": f'{HELPER}def decode(s: str):\n    """Takes a text encoded with encode, returns the decoded one."""\n',
    "entry_point": "decode",
    "canonical_solution": "    return s[-1:] + s[:-1]\n",
    "test": (
        "\n\nMETADATA = {}\n\n\ndef check(candidate):\n    from random import choice\n    import string\n\n"
        "    for _ in range(50):\n        str = ''.join(choice(string.ascii_lowercase) for i in range(12))\n"
        "        assert candidate(encode(str)) == str\n"
    ),
}
BODY = ROW["canonical_solution"]
WHOLE = f"def decode(s):\n{BODY}"


def problem(row: dict[str, str] = ROW) -> Problem:
    setup = row["prompt"].partition(f"def {row['entry_point']}")[0]
    test = f"{row['test']}\n\ncheck({row['entry_point']})\n"
    return Problem("humaneval/38", "humaneval", row["prompt"], ProgramTests(setup, (test,), row["entry_point"]).truth())


def judged(*completions: str, row: dict[str, str] = ROW) -> list[Score]:
    return HumanEval(seconds=1.0, memory_mb=256).score(
        [Attempt(problem(row), completion) for completion in completions]
    )


VERDICTS = [
    ("a body", BODY, "correct"),
    ("a body and the next function", f"{BODY}\n\ndef decode_twice(s):\n    return", "correct"),
    ("a fenced body", f"```python\n{BODY}```", "correct"),
    (
        "a body that uses the helper",
        "    for _ in range(len(s) - 1):\n        s = encode(s)\n    return s\n",
        "correct",
    ),
    ("a whole program", WHOLE, "correct"),
    ("a fenced program", f"So:\n```python\n{WHOLE}```", "correct"),
    ("a program with the prompt", ROW["prompt"] + BODY, "correct"),
    ("a program with an import of the prompt", f"def decode(s):\n    n = math.floor(1.5)\n{BODY}", "correct"),
    ("a program from the future", f"from __future__ import annotations\n{WHOLE}", "correct"),
    ("the wrong body", "    return s\n", "wrong"),
    ("None", "    return None\n", "wrong"),
    ("its own helper and the identity", "def encode(s):\n    return s\n\ndef decode(s):\n    return s\n", "wrong"),
    ("its own check", "def check(candidate):\n    pass\n\ndef decode(s):\n    return s\n", "wrong"),
    ("another function", "def encode_back(s):\n    return s\n", "crashed"),
    ("prose", "It cannot be done.", "crashed"),
    ("100,000 characters of prose", "words " * 17_000, "crashed"),
    ("a NUL byte", f"{WHOLE}x = '\0'", "crashed"),
    ("a lone surrogate", f"{WHOLE}x = '\udcff'", "crashed"),
    ("1 MB of body", BODY + "    # a comment\n" * 62_000, "correct"),
    ("2 MB of body", BODY + "    # a comment\n" * 140_000, "crashed"),
    ("ends itself", "    raise SystemExit(0)\n", "crashed"),
    ("never ends", "    while True:\n        pass\n", "timeout"),
    ("empty", "", "no_answer"),
    ("blank", "\n    \n", "no_answer"),
]


def test_every_completion_has_its_verdict() -> None:
    scores = judged(*(case[1] for case in VERDICTS))
    assert {case[0]: score.verdict for case, score in zip(VERDICTS, scores, strict=True)} == {
        case[0]: case[2] for case in VERDICTS
    }
    assert [score.reward for score in scores] == [float(score.verdict == "correct") for score in scores]
    assert [score.parts["correct"] for score in scores] == [score.reward for score in scores]


def test_random_inputs_are_the_same_every_time() -> None:
    """A program that fails on some of the random inputs only must not be lucky at times."""
    unlucky = "    return s[-1:] + s[:-1] if s[1:3] < 'zs' else s\n"
    assert len({judged(unlucky)[0].verdict for _ in range(4)}) == 1


REPLAY = """
import random, string
random.seed(0)
texts = iter(["".join(random.choice(string.ascii_lowercase) for i in range(12)) for _ in range(50)])
def decode(s):
    return next(texts)
"""


def test_random_inputs_cannot_be_foretold() -> None:
    """The judge's generator is not the program's: who draws the same numbers does not get the expected texts."""
    assert judged(REPLAY)[0].verdict == "wrong"
    assert judged(REPLAY.replace("random.seed(0)", ""))[0].verdict == "wrong"


def test_a_function_that_the_test_compares_with_itself() -> None:
    """As in HumanEval/33: it is the program's function on both sides, and literals decide in the end."""
    row = {
        **ROW,
        "prompt": 'def order(l: list):\n    """Sorts."""\n',
        "entry_point": "order",
        "test": "def check(candidate):\n    assert tuple(candidate([3, 1])) == tuple(order([3, 1]))\n"
        "    assert tuple(candidate([2, 1])) == (1, 2)\n",
    }
    scores = judged(
        "    return sorted(l)\n", "    return l\n", "    l.sort()\n    return l\n", "    return None\n", row=row
    )
    assert [score.verdict for score in scores] == ["correct", "wrong", "correct", "wrong"]


def test_an_unreadable_truth_is_the_graders_failure() -> None:
    [score] = HumanEval().score([Attempt(Problem("humaneval/0", "humaneval", "def f():\n", "check(f)"), BODY)])
    assert (score.reward, score.verdict) == (None, "grader_failed")


def test_without_a_sandbox_there_is_no_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = judged(BODY, "")
    assert [(score.reward, score.verdict) for score in scores] == [(None, "grader_failed"), (0.0, "no_answer")]
    assert "bubblewrap" in scores[0].detail


def test_the_prompt_and_the_kind() -> None:
    assert HumanEval().prompt(problem()) == (
        "Please provide a self-contained Python script that solves the following problem in a markdown code block:\n"
        f"```python\n{ROW['prompt'].strip()}\n```"
    )
    assert HumanEval().kind(problem()) == "humaneval/38"


def test_there_is_nothing_to_train_on() -> None:
    with pytest.raises(InputError, match="humaneval: it has no training problems"):
        HumanEval().problems("train")


def write(folder: Path, *rows: dict[str, Any], packed: bool = True) -> str:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    name = "HumanEval.jsonl.gz" if packed else "HumanEval.jsonl"
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    return str(folder)


@pytest.mark.parametrize("packed", [True, False])
def test_a_row_becomes_a_problem(tmp_path: Path, packed: bool) -> None:
    benchmark = HumanEval(write(tmp_path, ROW, packed=packed))
    assert benchmark.problems("test") == [problem()]
    assert benchmark.references() == [(problem(), BODY)]
    assert benchmark.excluded == {"test": []}
    tests = ProgramTests.read(problem().truth)
    assert tests is not None
    assert tests.setup == HELPER


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"entry_point": "code"}, "its prompt does not define code"),
        ({"test": "def check(candidate:"}, "no Python"),
        ({"prompt": f"import\n{ROW['prompt']}"}, "no Python"),
    ],
)
def test_problems_without_usable_tests_are_left_out_named_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, str], reason: str
) -> None:
    benchmark = HumanEval(write(tmp_path, {**ROW, "task_id": "HumanEval/0", **change}, ROW))
    assert benchmark.problems("test") == [problem()]
    assert benchmark.excluded == {"test": ["humaneval/0"]}
    assert "humaneval/0 is excluded" in caplog.text
    assert reason in caplog.text
    assert "1 of 2 problems are excluded" in caplog.text


def test_tests_that_fail_on_their_own_reference_are_found_and_left_out(tmp_path: Path) -> None:
    benchmark = HumanEval(
        write(tmp_path, ROW, {**ROW, "task_id": "HumanEval/1", "canonical_solution": "    return s\n"})
    )
    assert {problem_id: score.verdict for problem_id, score in benchmark.check_references().items()} == {
        "humaneval/1": "wrong"
    }
    assert benchmark.problems("test") == [problem()]
    assert benchmark.excluded == {"test": ["humaneval/1"]}


@pytest.mark.parametrize("field", sorted(ROW))
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    source = write(tmp_path, ROW, {name: value for name, value in ROW.items() if name != field})
    with pytest.raises(InputError, match=f'HumanEval.jsonl.gz, line 2: the field "{field}" is missing'):
        HumanEval(source).problems("test")


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="HumanEval.jsonl.gz: no such file"):
        HumanEval(str(tmp_path)).problems("test")
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(ROW).encode())[:-20])
    with pytest.raises(InputError, match="HumanEval.jsonl.gz: not a whole gzip file"):
        HumanEval(str(tmp_path)).problems("test")


def test_without_a_folder_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(*where: Any, **what: Any) -> list[dict[str, str]]:
        asked.append((where, what))
        return [ROW]

    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert HumanEval(revision="abc").problems("test") == [problem()]
    assert asked == [(("openai/openai_humaneval", None), {"split": "test", "revision": "abc"})]


@needs_data
def test_the_real_data() -> None:
    benchmark = HumanEval()
    problems = benchmark.problems("test")
    assert [each.problem_id for each in problems] == [f"humaneval/{index}" for index in range(164)]
    assert benchmark.excluded == {"test": []}
    setups = {each.problem_id: json.loads(each.truth)["setup"] for each in problems}
    with_helpers = {problem_id for problem_id, setup in setups.items() if "def " in setup}
    assert with_helpers == {f"humaneval/{number}" for number in (10, 32, 38, 50)}
    assert "def poly(xs: list, x: float):" in setups["humaneval/32"]
    assert "def find_zero" not in setups["humaneval/32"]


@needs_data
def test_some_references_pass_and_their_stubs_fail() -> None:
    """Those with helpers, random inputs or a test that compares the function with itself always among them."""
    pairs = HumanEval().references()
    special = [pairs[number] for number in (10, 32, 33, 38, 50, 51, 53, 115, 134)]
    check_references_and_stubs([*special, *random.Random(0).sample(pairs, 25)])


@needs_data
@pytest.mark.full
def test_all_164_references_pass_and_their_stubs_fail() -> None:
    check_references_and_stubs(HumanEval().references())


@needs_data
def test_no_program_can_redefine_what_the_judge_compares_with() -> None:
    problems = HumanEval().problems("test")
    cheats = {
        32: "def poly(xs, x):\n    return 0.0\n\ndef find_zero(xs):\n    return 0.0\n",
        38: "def encode_cyclic(s):\n    return s\n\ndef decode_cyclic(s):\n    return s\n",
        50: "def encode_shift(s):\n    return s\n\ndef decode_shift(s):\n    return s\n",
        33: "class Any(tuple):\n    __eq__ = lambda *_: True\n\ndef sort_third(l):\n    return Any()\n",
    }
    scores = HumanEval().score([Attempt(problems[number], program) for number, program in cheats.items()])
    assert [score.verdict for score in scores] == ["wrong"] * 4


def check_references_and_stubs(pairs: list[tuple[Problem, str]]) -> None:
    """Every form of the reference passes, `return None` never does."""
    forms = {
        "body": lambda each, code: code,
        "program": lambda each, code: each.question + code,
        "fenced": lambda each, code: f"So:\n```python\n{each.question}{code}\n```\nDone.",
        "stub": lambda each, code: "    return None\n",
        "whole stub": lambda each, code: f"def {json.loads(each.truth)['entry_point']}(*args):\n    return None\n",
    }
    attempts = [(name, Attempt(each, form(each, code))) for name, form in forms.items() for each, code in pairs]
    scores = HumanEval().score([attempt for _, attempt in attempts])
    surprising = {
        (attempt.problem.problem_id, name): score
        for (name, attempt), score in zip(attempts, scores, strict=True)
        if score.reward != float("stub" not in name)
    }
    assert surprising == {}
