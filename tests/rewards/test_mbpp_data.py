"""MBPP's data: splits, subsets, entry points, and what is left out or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import InputError
from rewards.mbpp import Mbpp, entry_point
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem

RIGHT = "def add_one(x):\n    return x + 1\n"
TESTS = ("assert add_one(1) == 2", "assert add_one(2) == 3", "assert add_one(-1) == 0")
ROW = {
    "task_id": 601,
    "text": "Write a function to add one.",
    "code": RIGHT,
    "test_setup_code": "",
    "test_list": list(TESTS[:2]),
    "challenge_test_list": list(TESTS[2:]),
}
SANITIZED = {
    "source_file": "Benchmark Questions Verification V2.ipynb",
    "task_id": 602,
    "prompt": "Write a function to find a root.",
    "code": "import math\ndef root(x):\n    return math.sqrt(x)",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(root(4), 2)"],
}


@pytest.mark.parametrize(
    ("code", "tests", "name"),
    [
        (RIGHT, TESTS, "add_one"),
        ("def similar(a, b):\n    pass", ["assert set(similar((1,), (2,))) == set(())"], "similar"),
        ("def helper():\n    pass\ndef main(x):\n    pass", ["assert main(1) == 2"], "main"),
        ("def sum(a, b):\n    pass", ["assert sum(10, 15) == 6"], "sum"),
        ("class Pair:\n    pass\ndef chain(x):\n    pass", ["assert chain([Pair(5), Pair(7)], 2) == 1"], "chain"),
        ("def inner(x):\n    pass\ndef outer(x):\n    pass", ["assert outer(inner(1)) == 2"], "outer"),
        ("class Shape:\n    pass", ["assert Shape(2).area() == 4"], "Shape"),
        ("import math\ndef f(x):\n    pass", ["assert math.isclose(f(1), 1.0, rel_tol=0.001)"], "f"),
        ("f = lambda x: x", ["assert f(1) == 1"], "f"),
        ("def Diff(a, b):\n    pass", ["assert (Diff([1], [2])) == [1]"], "Diff"),
        (RIGHT, ["assert True", "assert add_one(1) == 2"], "add_one"),
        (RIGHT, ["assert add_two(1) == 2"], None),
        (RIGHT, ["assert add_one"], None),
    ],
)
def test_the_entry_point_is_what_the_tests_call_of_the_reference(code: str, tests: list[str], name: str | None) -> None:
    assert entry_point(code, tests) == name


def folder(path: Path, *rows: dict[str, Any], name: str = "mbpp.jsonl") -> str:
    (path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_splits_go_by_the_number_of_the_task(tmp_path: Path) -> None:
    numbers = [1, 10, 11, 510, 511, 600, 601, 974, 975]
    benchmark = Mbpp(folder(tmp_path, *({**ROW, "task_id": number} for number in numbers)))
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["mbpp/601", "mbpp/974"]
    assert [problem.problem_id for problem in benchmark.problems("test")] == ["mbpp/11", "mbpp/510"]
    assert len(benchmark.references()) == 8
    assert benchmark.excluded == {"train": [], "test": []}


def test_a_row_becomes_a_problem(tmp_path: Path) -> None:
    [(problem, reference)] = Mbpp(folder(tmp_path, ROW)).references("train")
    assert problem == Problem(
        "mbpp/601", "mbpp", "Write a function to add one.", ProgramTests("", TESTS, "add_one").truth()
    )
    assert reference == RIGHT


@pytest.mark.parametrize("name", ["sanitized-mbpp.jsonl", "sanitized-mbpp.json"])
def test_the_sanitized_subset_has_a_file_of_its_own(tmp_path: Path, name: str) -> None:
    source = folder(tmp_path, ROW)
    with pytest.raises(InputError, match="sanitized-mbpp.jsonl: no such file"):
        Mbpp(source, subset="sanitized").problems("train")
    (tmp_path / name).write_text(json.dumps(SANITIZED) if name.endswith("l") else json.dumps([SANITIZED]))
    [problem] = Mbpp(source, subset="sanitized").problems("train")
    tests = ProgramTests("import math", ("assert math.isclose(root(4), 2)",), "root")
    assert problem == Problem("mbpp/sanitized/602", "mbpp", "Write a function to find a root.", tests.truth())
    [score] = Mbpp(source, subset="sanitized").score([Attempt(problem, SANITIZED["code"])])
    assert score.verdict == "correct"


def test_an_unknown_subset_is_refused() -> None:
    with pytest.raises(InputError, match="mbpp: no subset is called 'plus'; there are full and sanitized"):
        Mbpp(subset="plus")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"test_list": [], "challenge_test_list": []}, "it has no tests"),
        ({"test_list": [1]}, "some that are no text"),
        ({"code": "def add_one(x:"}, "no Python"),
        ({"test_list": ["assert add_one(1) =="]}, "no Python"),
        ({"test_setup_code": "root = Node("}, "no Python"),
        (
            {"test_list": ["assert add_two(1) == 2"], "challenge_test_list": []},
            "call nothing that its reference defines",
        ),
    ],
)
def test_problems_without_usable_tests_are_left_out_named_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any], reason: str
) -> None:
    benchmark = Mbpp(folder(tmp_path, ROW, {**ROW, "task_id": 700, **change}))
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["mbpp/601"]
    assert benchmark.excluded == {"train": ["mbpp/700"]}
    assert "mbpp/700 is excluded" in caplog.text
    assert reason in caplog.text
    assert "1 of 2 train problems are excluded" in caplog.text


def test_tests_that_fail_on_their_own_reference_are_found_and_left_out(tmp_path: Path) -> None:
    broken = {**ROW, "task_id": 700, "test_list": ["assert add_one(1) == 3"]}
    benchmark = Mbpp(folder(tmp_path, ROW, broken))
    assert len(benchmark.problems("train")) == 2
    failing = benchmark.check_references("train")
    assert {problem_id: score.verdict for problem_id, score in failing.items()} == {"mbpp/700": "wrong"}
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["mbpp/601"]
    assert benchmark.excluded == {"train": ["mbpp/700"]}


@pytest.mark.parametrize("field", sorted(ROW))
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    source = folder(tmp_path, ROW, {name: value for name, value in ROW.items() if name != field})
    with pytest.raises(InputError, match=f'mbpp.jsonl, line 2: the field "{field}" is missing'):
        Mbpp(source).problems("train")


@pytest.mark.parametrize(
    ("content", "said"), [("[{", "not valid JSON"), ("{}", "not an array"), ("[]", "not an array"), ("[1]", "row 0")]
)
def test_a_broken_array_is_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "sanitized-mbpp.json").write_text(content)
    with pytest.raises(InputError, match=f"sanitized-mbpp.json.*{said}") as caught:
        Mbpp(str(tmp_path), subset="sanitized").problems("test")
    assert "\n" not in str(caught.value)


def test_without_a_folder_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(*where: str, **what: Any) -> list[dict[str, Any]]:
        asked.append((where, what))
        return [ROW] if where[1] == "full" else [SANITIZED]

    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    assert [problem.problem_id for problem in Mbpp(revision="abc").problems("train")] == ["mbpp/601"]
    assert [problem.problem_id for problem in Mbpp(subset="sanitized").problems("train")] == ["mbpp/sanitized/602"]
    assert asked == [
        (("google-research-datasets/mbpp", "full"), {"split": "train", "revision": "abc"}),
        (("google-research-datasets/mbpp", "sanitized"), {"split": "train", "revision": None}),
    ]
    asked.clear()
    assert len(Mbpp().references()) == 4
    assert [what["split"] for _, what in asked] == ["prompt", "test", "validation", "train"]
