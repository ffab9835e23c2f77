"""Benchmarks by name, and the user's own by class."""

import pickle
from pathlib import Path
from typing import Any, get_args

import pytest

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.benchmark import BenchmarkName, ExamPart
from conf.storage.home import InputError
from rewards.data.benchmarks import configured, load
from rewards.verifier import Attempt, Problem


def test_every_name_that_the_configuration_allows_is_known() -> None:
    names = get_args(BenchmarkName)
    assert [load(name).name for name in names] == list(names)
    assert all(load(name).bounded for name in names)
    assert [name for name in names if load(name).splits != ("train", "test")] == ["humaneval", "instructions"]
    assert [name for name in names if load(name).answer_line is None] == ["mbpp", "humaneval", "instructions", "ants"]


@pytest.mark.parametrize(("name", "subset"), [("humaneval", None), ("instructions", None), ("math", "500")])
def test_there_is_nothing_to_train_on(name: str, subset: str | None) -> None:
    benchmark = configured(ExamPart(benchmark=name, subset=subset))
    assert benchmark.splits == ("test",)
    with pytest.raises(InputError, match="exam problems only|a test split only"):
        benchmark.problems("train")


@pytest.mark.parametrize(
    ("entry", "settings"),
    [
        (BenchmarkConfig(name="arithmetic", levels=("1", "2")), {"levels": ("1", "2")}),
        (
            BenchmarkConfig(name="gsm8k", revision="e53f048", lenient=True),
            {"source": None, "revision": "e53f048", "lenient": True},
        ),
        (ExamPart(benchmark="math", source="a folder", subset="500"), {"source": "a folder", "subset": "500"}),
        (
            BenchmarkConfig(name="mbpp", subset="sanitized"),
            {"subset": "sanitized", "sandbox": SandboxConfig(seconds=3.0)},
        ),
    ],
)
def test_each_entry_brings_its_own_settings(entry: BenchmarkConfig | ExamPart, settings: dict[str, Any]) -> None:
    benchmark = configured(entry, SandboxConfig(seconds=3.0))
    assert {name: getattr(benchmark, name) for name in settings} == settings


OWN = """
from rewards.verifier import Problem, Score

class Yes:
    __slots__ = ("source",)
    name = "yes"

    def __init__(self, source):
        self.source = source

    def problems(self, split):
        return [Problem(f"yes/{split}", "yes", "?", "")]

    def score(self, attempts):
        return [Score(1.0, "correct") for _ in attempts]

class ExamOnly(Yes):
    splits = ("test",)
"""


def test_a_users_class_gets_the_protocols_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "always_yes.py").write_text(OWN)
    entry = BenchmarkConfig(name="always_yes:Yes", source="a folder", weight=2)
    benchmark: Any = configured(entry)
    assert (type(benchmark).__module__, benchmark.source, entry.label) == ("always_yes", "a folder", "yes")
    assert (benchmark.splits, dict(benchmark.excluded), benchmark.bounded) == (("train", "test"), {}, False)
    assert benchmark.draw("any", 7) == benchmark.problems("train")
    assert benchmark.kind(Problem("y", "yes", "?", "")) == "y"
    copy = pickle.loads(pickle.dumps(benchmark))
    assert copy.score([Attempt(Problem("y", "yes", "?", ""), "")])[0].verdict == "correct"
    part = ExamPart(benchmark="always_yes:ExamOnly")
    assert (part.name, configured(part).splits) == ("examonly", ("test",))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobodys_module:Yes", r"nobodys_module:Yes cannot be imported \(ModuleNotFoundError: No module named .*"),
        ("always_no:Yes", r"always_no:Yes cannot be imported \(AttributeError: .*"),
        ("broken:Yes", r"broken:Yes cannot be imported \(SyntaxError: .*"),
    ],
)
def test_a_class_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "always_no.py").touch()
    (tmp_path / "broken.py").write_text("class Yes(")
    with pytest.raises(InputError, match=f"^{message}; put its module into rewards/ or on PYTHONPATH$"):
        configured(BenchmarkConfig(name=name))


def test_only_a_configuration_may_name_code_to_run() -> None:
    """A row of a dataset, or a line of the journal, names a benchmark too, and `load` reads those."""
    with pytest.raises(InputError, match="os:getcwd"):
        load("os:getcwd")
