"""MBPP: what a program is worth, and that every reference passes its own tests while no stub does."""

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem

needs_data = pytest.mark.skipif(
    not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no MBPP files to read"
)
TESTS = ("assert add_one(1) == 2", "assert add_one(2) == 3", "assert add_one(-1) == 0")
# The references that are tables in earnest: February has 28 days, and b is 0 for roots of opposite sign.
HONEST_TABLES = {"mbpp/336", "mbpp/820", "mbpp/840"}
PROBLEM = Problem("mbpp/601", "mbpp", "Write a function to add one.", ProgramTests("", TESTS, "add_one").truth())
RIGHT = "def add_one(x):\n    return x + 1\n"
VERDICTS = [
    ("fenced", f"Here:\n```python\n{RIGHT}```\nDone.", {"correct"}),
    ("bare", RIGHT, {"correct"}),
    ("Windows line ends", RIGHT.replace("\n", "\r\n"), {"correct"}),
    ("a second try", f"```python\ndef add_one(x):\n    return x\n```\nNo:\n```python\n{RIGHT}```", {"correct"}),
    ("cut off after the function", f"```python\n{RIGHT}", {"correct"}),
    ("100,000 characters of program", f"```python\n{RIGHT}{'# a comment line' * 6_500}\n```", {"correct"}),
    ("1 MB of program", RIGHT + "# a line\n" * 115_000, {"correct"}),
    ("more than 1 MB of program", RIGHT + "# a line\n" * 250_000, {"crashed"}),
    ("1 MB of nesting", f"{RIGHT}x = {'[' * 1_000_000}", {"crashed"}),
    ("wrong", "def add_one(x):\n    return x - 1", {"wrong"}),
    ("the shown test only", "def add_one(x):\n    return {1: 2}.get(x)", {"wrong"}),
    ("None", "def add_one(x):\n    return None", {"wrong"}),
    ("raises", "def add_one(x):\n    return x + '1'", {"crashed"}),
    ("another name", "def add_two(x):\n    return x + 2", {"crashed"}),
    ("cut off within a line", "```python\ndef add_one(x):\n    return x + (", {"crashed"}),
    ("prose", "I would add one to the number.", {"crashed"}),
    ("100,000 characters of prose", "word " * 20_000, {"crashed"}),
    ("a NUL byte", f"{RIGHT}\0", {"crashed"}),
    ("a NUL byte in a text", f"{RIGHT}x = '\0'", {"crashed"}),
    ("a lone surrogate", f"{RIGHT}x = '\ud800'", {"crashed"}),
    ("bytes that are no UTF-8", RIGHT + b"x = '\xff\xfe'".decode(errors="surrogateescape"), {"crashed"}),
    ("empty", "", {"no_answer"}),
    ("blank", " \n\t\n", {"no_answer"}),
    ("an empty block", "```python\n```", {"no_answer"}),
    ("ends itself", f"{RIGHT}import sys\nsys.exit(0)", {"crashed"}),
    ("never ends", "def add_one(x):\n    while True:\n        pass", {"timeout"}),
    ("takes all memory", "def add_one(x):\n    return [0] * (1 << 40)", {"out_of_memory"}),
    (
        "opens a socket",
        "import socket\ndef add_one(x):\n    socket.socket()\n    return x + 1",
        {"forbidden", "crashed"},
    ),
]


def test_every_completion_has_its_verdict() -> None:
    scores = Mbpp(seconds=1.0, memory_mb=256).score([Attempt(PROBLEM, case[1]) for case in VERDICTS])
    found = {case[0]: score.verdict for case, score in zip(VERDICTS, scores, strict=True)}
    allowed = {case[0]: case[2] for case in VERDICTS}
    assert {name: verdict for name, verdict in found.items() if verdict not in allowed[name]} == {}
    assert [score.reward for score in scores] == [float(score.verdict == "correct") for score in scores]
    assert [score.parts["correct"] for score in scores] == [score.reward for score in scores]


def test_a_table_of_the_shown_test_is_flagged_in_the_parts() -> None:
    only_shown = ProgramTests("", TESTS[:1], "add_one").truth()
    table = "```python\ndef add_one(x):\n    if x == 1:\n        return 2\n```"
    [passed, failed, honest, nothing] = Mbpp().score(
        [
            Attempt(Problem("mbpp/1", "mbpp", "", only_shown), table),
            Attempt(PROBLEM, table),
            Attempt(PROBLEM, RIGHT),
            Attempt(PROBLEM, ""),
        ]
    )
    assert (passed.verdict, passed.parts) == ("correct", {"correct": 1.0, "literal_table": 1.0})
    assert (failed.verdict, failed.parts) == ("wrong", {"correct": 0.0, "literal_table": 1.0})
    assert (honest.verdict, honest.parts) == ("correct", {"correct": 1.0, "literal_table": 0.0})
    assert (nothing.verdict, nothing.parts) == ("no_answer", {"correct": 0.0})


def test_an_unreadable_truth_is_the_graders_failure() -> None:
    [score] = Mbpp().score([Attempt(Problem("mbpp/1", "mbpp", "", "assert f(1) == 2"), RIGHT)])
    assert (score.reward, score.verdict) == (None, "grader_failed")
    assert "truth" in score.detail


def test_without_a_sandbox_there_is_no_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = Mbpp().score([Attempt(PROBLEM, RIGHT), Attempt(PROBLEM, "")])
    assert [(score.reward, score.verdict) for score in scores] == [(None, "grader_failed"), (0.0, "no_answer")]


def test_the_prompt_shows_one_assert_and_what_it_needs() -> None:
    prompt = Mbpp().prompt(PROBLEM)
    assert prompt == (
        "You are an expert Python programmer, and here is your task: Write a function to add one. "
        "Your code should pass this test:\n\nassert add_one(1) == 2\n\n"
        "Answer with the whole program in one ```python block."
    )
    tree = ProgramTests("root = Node(1)", ("assert height(root) == 1",), "height").truth()
    shown = Mbpp().prompt(Problem("mbpp/927", "mbpp", "Write a function.", tree))
    assert "test:\n\nroot = Node(1)\nassert height(root) == 1\n\n" in shown
    assert Mbpp().kind(PROBLEM) == "mbpp/601"


@needs_data
def test_the_real_data() -> None:
    benchmark = Mbpp()
    train, test = benchmark.problems("train"), benchmark.problems("test")
    assert (len(train), len(test), len(benchmark.references())) == (374, 500, 974)
    assert benchmark.excluded == {"train": [], "test": []}
    tests = [ProgramTests.read(problem.truth) for problem, _ in benchmark.references()]
    counts = Counter(len(each.tests) for each in tests if each is not None)
    assert counts.total() == 974
    assert min(counts) >= 3
    assert sum(each.setup != "" for each in tests if each is not None) == 2
    names = {
        problem.problem_id: each.entry_point
        for (problem, _), each in zip(benchmark.references(), tests, strict=True)
        if each
    }
    assert names["mbpp/2"] == "similar_elements"
    assert names["mbpp/927"] == "max_height"


@needs_data
def test_some_references_pass_and_their_stubs_fail() -> None:
    check_references_and_stubs(random.Random(0).sample(Mbpp().references(), 40))


@needs_data
@pytest.mark.full
def test_all_974_references_pass_and_their_stubs_fail() -> None:
    check_references_and_stubs(Mbpp().references())
    assert Mbpp().check_references() == {}


def check_references_and_stubs(pairs: list[tuple[Problem, str]]) -> None:
    benchmark = Mbpp()
    scores = benchmark.score([Attempt(problem, f"So:\n```python\n{code}\n```") for problem, code in pairs])
    failing = {
        pair[0].problem_id: score for pair, score in zip(pairs, scores, strict=True) if score.verdict != "correct"
    }
    assert failing == {}
    flagged = [pair[0].problem_id for pair, score in zip(pairs, scores, strict=True) if score.parts["literal_table"]]
    assert set(flagged) <= HONEST_TABLES
    stubs = [Attempt(problem, f"def {_entry(problem)}(*args, **kwargs):\n    return None\n") for problem, _ in pairs]
    passing = [
        stub.problem.problem_id
        for stub, score in zip(stubs, benchmark.score(stubs), strict=True)
        if score.reward != 0.0
    ]
    assert passing == []


def _entry(problem: Problem) -> str:
    return json.loads(problem.truth)["entry_point"]
