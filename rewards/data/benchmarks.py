"""Create benchmarks from their names in a configuration, and choose the problems of an exam."""

import hashlib
import importlib
import os
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, get_args

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.benchmark import BenchmarkName, ExamPart
from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.competition_math import CompetitionMath
from rewards.data.dataset_rows import DATA_VARIABLE
from rewards.data.instructions import Instructions
from rewards.data.questions import Questions
from rewards.environments.ants import Ants
from rewards.environments.episodes import Episodes
from rewards.gsm8k import Gsm8k
from rewards.humaneval import HumanEval
from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import DEFAULT_SANDBOX
from rewards.triviaqa import TriviaQa
from rewards.verifier import Benchmark, Problem

REQUIRED = ("problems", "score", "score_one")
OPTIONAL_MEMBERS = [name for name in vars(Benchmark) if not name.startswith("_") and name not in REQUIRED]


def load(name: str, sandbox: SandboxConfig = DEFAULT_SANDBOX) -> Benchmark:
    """Return the built-in benchmark `name`, set up for its default data. Nothing is read yet.

    Raises InputError for any other name, because names also come from data, which must never choose a class to import.
    """
    names = get_args(BenchmarkName)
    if name not in names:
        raise InputError(f"no benchmark is called {name!r}; there are {', '.join(names)}")
    return configured(ExamPart(benchmark=name), sandbox)


def exam_problems(part: ExamPart, sandbox: SandboxConfig, order: str = "") -> list[Problem]:
    """Return an exam part's problems: the first `part.problems` of the test split when sorted by a hash of the id.

    Without sorting, the first problems could all have the same level or subject. `order`: a seed that shuffles the
    chosen problems, for an exam that may end before all of them have been asked. An empty `order` leaves them sorted.
    """
    by_hash = sorted(
        configured(part, sandbox).problems("test"),
        key=lambda problem: hashlib.sha256(problem.problem_id.encode()).digest(),
    )
    problems = by_hash[: part.problems]
    return random.Random(order).sample(problems, len(problems)) if order else problems


def configured(entry: BenchmarkConfig | ExamPart, sandbox: SandboxConfig = DEFAULT_SANDBOX) -> Benchmark:
    """Create the benchmark that a configuration entry describes, without reading its data.

    Answers to mbpp and humaneval run under the limits of `sandbox`. Raises InputError if a class cannot be imported.
    """
    name = entry.name if isinstance(entry, BenchmarkConfig) else entry.benchmark
    if ":" in name:
        return _imported(name, entry.source)
    cached: Any = _built_in
    return cached(name, entry, sandbox, os.environ.get(DATA_VARIABLE))


def plays_episodes(entries: Sequence[BenchmarkConfig]) -> bool:
    """Return whether any of the benchmarks is an environment, whose answers are the turns of an episode."""
    return any(configured(entry).environment for entry in entries)


@lru_cache(maxsize=32)
def _built_in(name: str, entry: BenchmarkConfig | ExamPart, sandbox: SandboxConfig, data: str | None) -> Benchmark:
    """Return a built-in benchmark, always the same object, which reads its files once. `data`: NIGHTSCHOOL_DATA.

    Every round of a night draws problems anew, but a change of the files must not reach a running night.
    """
    match name:
        case "arithmetic":
            return Arithmetic(entry.levels)
        case "instructions":
            return Instructions()
        case "ants":
            return Episodes(Ants(entry.levels or ("0",), ants=entry.ants), bounded=True)
        case "gsm8k":
            return Gsm8k(entry.source, entry.revision, entry.lenient, entry.levels)
        case "math":
            return CompetitionMath(entry.source, entry.levels, entry.subset, entry.revision)
        case "mbpp":
            return Mbpp(entry.source, entry.subset, entry.revision, sandbox)
        case "humaneval":
            return HumanEval(entry.source, entry.revision, sandbox)
        case "questions":
            return Questions(entry.source)
        case _:
            return TriviaQa(entry.source, entry.revision)


def _imported(name: str, source: str | None) -> Benchmark:
    """Return an instance of `module:Class`: an environment wrapped in `Episodes`, or a benchmark given its defaults."""
    module, _, class_name = name.partition(":")
    try:
        benchmark = getattr(importlib.import_module(module), class_name)(source)
    except Exception as error:  # a user's module can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name} cannot be imported ({type(error).__name__}: {reason}); "
            "put its module into rewards/ or on PYTHONPATH"
        ) from error
    if hasattr(benchmark, "step"):
        return Episodes(benchmark)
    for member in OPTIONAL_MEMBERS:
        if not hasattr(benchmark, member):
            setattr(type(benchmark), member, getattr(Benchmark, member))
    return benchmark
