"""MBPP: what a program is worth; its splits, subsets and entry points."""

import json
from collections import Counter
from pathlib import Path

import pytest

from conf.schema import SandboxConfig
from conf.storage.home import InputError
from rewards.mbpp import Mbpp, entry_point
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem
from tests.rewards.datasets import ADD_ONE, MBPP, needs_data, write_rows

TESTS = (*MBPP["test_list"], *MBPP["challenge_test_list"])
PROBLEM = Problem("mbpp/601", "mbpp", MBPP["text"], ProgramTests("", TESTS, "add_one").truth())
SANITIZED = {
    "source_file": "Benchmark Questions Verification V2.ipynb",
    "task_id": 602,
    "prompt": "Write a function to find a root.",
    "code": "import math\ndef root(x):\n    return math.sqrt(x)",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(root(4), 2)"],
}
VERDICTS = {
    "fenced": (f"Here:\n```python\n{ADD_ONE}```\nDone.", "correct"),
    "1 MB of program": (ADD_ONE + "# a line\n" * 115_000, "correct"),
    "wrong": ("def add_one(x):\n    return x - 1", "wrong"),
    "the shown test only": ("def add_one(x):\n    return {1: 2}.get(x)", "wrong"),
    "blank": (" \n\t\n", "no_answer"),
}


def test_every_completion_has_its_verdict() -> None:
    benchmark = Mbpp(sandbox=SandboxConfig(seconds=1.0, memory_mb=256))
    scores = benchmark.score([Attempt(PROBLEM, completion) for completion, _ in VERDICTS.values()])
    found = {name: score.verdict for name, score in zip(VERDICTS, scores, strict=True)}
    assert found == {name: verdict for name, (_, verdict) in VERDICTS.items()}
    for score in scores:
        assert score.reward == score.parts["correct"] == float(score.verdict == "correct")


def test_the_prompt_shows_one_assert_and_its_setup() -> None:
    assert Mbpp().prompt(PROBLEM) == (
        "You are an expert Python programmer. Answer with the whole program in one ```python block. "
        "Here is your task:\nWrite a function to add one. Your code should pass this test:\n\nassert add_one(1) == 2"
    )
    tree = ProgramTests("root = Node(1)", ("assert height(root) == 1",), "height").truth()
    shown = Mbpp().prompt(Problem("mbpp/927", "mbpp", "Write a function.", tree))
    assert shown.endswith("test:\n\nroot = Node(1)\nassert height(root) == 1")


@pytest.mark.parametrize(
    ("code", "tests", "name"),
    [
        (ADD_ONE, TESTS, "add_one"),
        ("def similar(a, b):\n    pass", ["assert set(similar((1,), (2,))) == set(())"], "similar"),
        ("def helper():\n    pass\ndef main(x):\n    pass", ["assert main(1) == 2"], "main"),
        ("def sum(a, b):\n    pass", ["assert sum(10, 15) == 6"], "sum"),
        ("class Pair:\n    pass\ndef chain(x):\n    pass", ["assert chain([Pair(5), Pair(7)], 2) == 1"], "chain"),
        ("def inner(x):\n    pass\ndef outer(x):\n    pass", ["assert outer(inner(1)) == 2"], "outer"),
        ("class Shape:\n    pass", ["assert Shape(2).area() == 4"], "Shape"),
        ("import math\ndef f(x):\n    pass", ["assert math.isclose(f(1), 1.0, rel_tol=0.001)"], "f"),
        ("f = lambda x: x", ["assert f(1) == 1"], "f"),
        ("def Diff(a, b):\n    pass", ["assert (Diff([1], [2])) == [1]"], "Diff"),
        (ADD_ONE, ["assert True", "assert add_one(1) == 2"], "add_one"),
        (ADD_ONE, ["assert add_two(1) == 2"], None),
        (ADD_ONE, ["assert add_one"], None),
    ],
)
def test_the_entry_point_is_what_the_tests_call_of_the_reference(code: str, tests: list[str], name: str | None) -> None:
    assert entry_point(code, tests) == name


def test_the_splits_go_by_the_number_of_the_task(tmp_path: Path) -> None:
    rows = [MBPP | {"task_id": number} for number in (1, 10, 11, 510, 511, 600, 601, 974, 975)]
    benchmark = Mbpp(write_rows(tmp_path / "mbpp.jsonl", *rows))
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["mbpp/601", "mbpp/974"]
    assert [problem.problem_id for problem in benchmark.problems("test")] == ["mbpp/11", "mbpp/510"]
    assert benchmark.references("train")[0] == (PROBLEM, ADD_ONE)


@pytest.mark.parametrize("name", ["sanitized-mbpp.jsonl", "sanitized-mbpp.json"])
def test_the_sanitized_subset_has_a_file_of_its_own(tmp_path: Path, name: str) -> None:
    source = write_rows(tmp_path / "mbpp.jsonl", MBPP)
    with pytest.raises(InputError, match="sanitized-mbpp.jsonl"):
        Mbpp(source, subset="sanitized").problems("train")
    write_rows(tmp_path / name, SANITIZED if name.endswith("l") else [SANITIZED])
    [problem] = Mbpp(source, subset="sanitized").problems("train")
    tests = ProgramTests("import math", ("assert math.isclose(root(4), 2)",), "root")
    assert problem == Problem("mbpp/sanitized/602", "mbpp", "Write a function to find a root.", tests.truth())
    [score] = Mbpp(source, subset="sanitized").score([Attempt(problem, SANITIZED["code"])])
    assert score.verdict == "correct"


def test_the_hub_has_the_subset_and_splits_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr(
        "datasets.load_dataset", lambda *where, split, **_: asked.append((where[1], split)) or [SANITIZED]
    )
    assert [problem.problem_id for problem in Mbpp(subset="sanitized").problems("train")] == ["mbpp/sanitized/602"]
    assert asked == [("sanitized", "train")]


@needs_data
def test_the_real_tests() -> None:
    problems = [*Mbpp().problems("train"), *Mbpp().problems("test")]
    tests = {problem.problem_id: json.loads(problem.truth) for problem in problems}
    counts = Counter(len(each["tests"]) for each in tests.values())
    assert counts.total() == 874
    assert min(counts) >= 3
    assert sum(each["setup"] != "" for each in tests.values()) == 2
    assert tests["mbpp/927"]["entry_point"] == "max_height"
