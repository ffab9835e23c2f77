"""A benchmark is found by its name, and only by its name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.benchmark import PROGRAMS, BenchmarkName, ExamPart
from conf.sections.lessons import TraceFile
from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.benchmarks import configured, excluded, load
from rewards.competition_math import CompetitionMath
from rewards.gsm8k import Gsm8k
from rewards.humaneval import HumanEval
from rewards.jail import policy
from rewards.jail.layers import missing_layers
from rewards.mbpp import Mbpp
from rewards.triviaqa import TriviaQa
from rewards.verifier import Attempt, Problem

THERE_ARE = "arithmetic, gsm8k, math, mbpp, humaneval and triviaqa"


def test_arithmetic_with_its_levels() -> None:
    benchmark = load("arithmetic", levels=("1", "2"))
    assert isinstance(benchmark, Arithmetic)
    assert benchmark.levels == ("1", "2")


def test_gsm8k_with_its_source() -> None:
    benchmark = load("gsm8k", source="a folder")
    assert isinstance(benchmark, Gsm8k)
    assert benchmark.source == "a folder"


def test_every_name_that_the_configuration_allows_is_known() -> None:
    names = get_args(BenchmarkName)
    assert [load(name).name for name in names] == list(names)
    classes = [Arithmetic, Gsm8k, CompetitionMath, Mbpp, HumanEval, TriviaQa]
    assert [type(load(name)) for name in names] == classes


OWN = """
from rewards.verifier import Score

class Yes:
    name = "yes"

    def __init__(self, source):
        self.source = source

    def score(self, attempts):
        return [Score(1.0, "correct") for _ in attempts]
"""


def test_a_benchmark_of_ones_own_needs_its_class_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "always_yes.py").write_text(OWN)
    entry = BenchmarkConfig(name="always_yes:Yes", source="a folder", weight=2)
    benchmark: Any = configured(entry)
    assert (type(benchmark).__module__, benchmark.source, entry.label) == ("always_yes", "a folder", "yes")
    assert benchmark.score([Attempt(Problem("y", "yes", "?", ""), "")])[0].verdict == "correct"
    part = ExamPart(benchmark="always_yes:Yes")
    assert (part.name, type(configured(part))) == ("yes", type(benchmark))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobodys_module:Yes", r"nobodys_module:Yes cannot be imported \(ModuleNotFoundError: No module named .*"),
        ("always_no:Yes", r"always_no:Yes cannot be imported \(AttributeError: .*"),
        ("broken:Yes", r"broken:Yes cannot be imported \(SyntaxError: .*"),
    ],
)
def test_a_class_that_is_not_there_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "always_no.py").touch()
    (tmp_path / "broken.py").write_text("class Yes(")
    with pytest.raises(InputError, match=f"^{message}; its module lies in rewards/ or on PYTHONPATH$"):
        configured(BenchmarkConfig(name=name))


def test_what_a_benchmark_of_ones_own_is_not_given_is_refused() -> None:
    with pytest.raises(InputError, match="^json:Own: its problems have no levels; remove `levels`$"):
        configured(BenchmarkConfig(name="json:Own", levels=("1",)))
    with pytest.raises(ValidationError, match="is given its `source` alone; remove `revision`"):
        BenchmarkConfig(name="json:Own", revision="main")
    with pytest.raises(ValidationError, match="json:Own has no subsets"):
        ExamPart(benchmark="json:Own", subset="500")


def test_only_a_configuration_may_name_code_to_run() -> None:
    """A row of a data set, or a line of the journal, names a benchmark too, and `load` is what reads those."""
    with pytest.raises(InputError, match="no benchmark is called 'os:getcwd'"):
        load("os:getcwd")
    with pytest.raises(ValidationError):
        TraceFile(source="traces.jsonl", benchmark="os:getcwd")  # pyright: ignore[reportArgumentType]


def test_each_entry_brings_its_own_settings() -> None:
    gsm8k = configured(BenchmarkConfig(name="gsm8k", revision="e53f048", lenient=True))
    assert isinstance(gsm8k, Gsm8k)
    assert (gsm8k.source, gsm8k.revision, gsm8k.lenient) == (None, "e53f048", True)
    part = configured(ExamPart(benchmark="math", source="a folder", subset="500"))
    assert isinstance(part, CompetitionMath)
    assert (part.source, part.subset) == ("a folder", "500")
    limits = SandboxConfig(seconds=2.5, memory_mb=256, workers=3)
    mbpp = configured(BenchmarkConfig(name="mbpp", subset="sanitized", revision="main"), limits)
    assert isinstance(mbpp, Mbpp)
    assert (mbpp.subset, mbpp.revision, mbpp.seconds, mbpp.memory_mb) == ("sanitized", "main", 2.5, 256)
    assert (mbpp.workers, mbpp.without) == (3, frozenset())
    humaneval = configured(ExamPart(benchmark="humaneval", source="a folder"), limits)
    assert isinstance(humaneval, HumanEval)
    assert (humaneval.source, humaneval.seconds, humaneval.memory_mb) == ("a folder", 2.5, 256)
    assert (humaneval.workers, humaneval.without) == (3, frozenset())


def test_a_layer_is_done_without_only_where_it_is_missing_and_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> int:
        raise policy.SandboxUnavailable("Landlock: not in this kernel; boot another")

    allowing = SandboxConfig(allow_missing=("landlock", "seccomp"))
    if not missing_layers():
        assert [load(name, sandbox=allowing).without for name in PROGRAMS] == [frozenset()] * 2
    monkeypatch.setattr(policy, "landlock_ruleset", lacking)
    assert missing_layers()["landlock"] == "Landlock: not in this kernel; boot another"
    for name in PROGRAMS:
        assert "landlock" in load(name, sandbox=allowing).without
        assert load(name, sandbox=SandboxConfig(allow_missing=("seccomp",))).without <= {"seccomp"}
        assert load(name).without == frozenset()


def test_only_a_lenient_entry_reads_a_last_number() -> None:
    attempt = Attempt(Problem("g", "gsm8k", "How many?", "#### 4"), "There are 4.")
    assert [score.verdict for score in load("gsm8k").score([attempt])] == ["no_answer"]
    assert [score.verdict for score in load("gsm8k", lenient=True).score([attempt])] == ["correct"]


def test_what_a_benchmark_left_out_is_named(tmp_path: Path) -> None:
    rows = [{"question": "How many?", "answer": answer} for answer in ("#### 4", "four", "#### 5 or 6")]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    benchmark = load("gsm8k", str(tmp_path))
    assert excluded(benchmark, "train") == []
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["gsm8k/train/0"]
    assert excluded(benchmark, "train") == ["gsm8k/train/1", "gsm8k/train/2"]
    assert excluded(load("arithmetic"), "train") == []


def test_the_heavy_libraries_wait_until_their_benchmark_is_meant() -> None:
    code = (
        "import sys, rewards.benchmarks as b; b.load('gsm8k'); print('sympy' in sys.modules, 'datasets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Arithmetic",), f"no benchmark is called 'Arithmetic'; there are {THERE_ARE}"),
        (("",), f"no benchmark is called ''; there are {THERE_ARE}"),
        (("arithmetic", "a folder"), "arithmetic: its problems are generated, .*"),
        (("arithmetic", None, ["6"]), "arithmetic: no level 6; there are 1, 2, 3, 4, 5"),
        (("gsm8k", None, ["1"]), "gsm8k: its problems have no levels; remove `levels`"),
        (("mbpp", None, ["1"]), "mbpp: its problems have no levels; remove `levels`"),
        (("humaneval", None, ["1"]), "humaneval: its problems have no levels; remove `levels`"),
        (("triviaqa", None, ["1"]), "triviaqa: its problems have no levels; remove `levels`"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_line(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$") as caught:
        load(*arguments)
    assert "\n" not in str(caught.value)
