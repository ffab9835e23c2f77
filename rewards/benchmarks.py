"""Benchmarks by the name that a configuration gives them."""

import importlib
from collections.abc import Sequence

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.verifier import Benchmark

DEFAULT_SANDBOX = SandboxConfig()
OPTIONAL_MEMBERS = ("splits", "excluded", "answer_line", "truth_marker", "bounded", "draw", "kind")


def configured(entry: BenchmarkConfig | ExamPart, sandbox: SandboxConfig = DEFAULT_SANDBOX) -> Benchmark:
    """Return the benchmark of a configuration entry, without reading its data. Raises InputError as `load` does.

    Only an entry may name a user's class, `module:Class`: a name found in data must never be imported.
    """
    name = _name(entry)
    if is_user_defined(entry):
        _refuse_levels(name, entry.levels)
        return _imported(name, entry.source)
    return load(
        name,
        entry.source,
        entry.levels,
        subset=entry.subset,
        revision=entry.revision,
        lenient=entry.lenient,
        sandbox=sandbox,
    )


def is_user_defined(entry: BenchmarkConfig | ExamPart) -> bool:
    """Return whether an entry names a class of the user's, `module:Class`."""
    return ":" in _name(entry)


def load(
    name: str,
    source: str | None = None,
    levels: Sequence[str] | None = None,
    *,
    subset: str | None = None,
    revision: str | None = None,
    lenient: bool = False,
    sandbox: SandboxConfig = DEFAULT_SANDBOX,
) -> Benchmark:
    """Return the built-in benchmark `name`, without reading its data.

    `source` is a folder (None: the default), `levels` restricts the problems (None: all), `revision` pins the hub's
    dataset, `subset` is "500" of math or "sanitized" of mbpp, `lenient` is GSM8K's, and `sandbox` is where mbpp and
    humaneval run programs. Raises InputError for an unknown name, source or level.
    """
    if name not in ("arithmetic", "math"):
        _refuse_levels(name, levels)
    # Imported on demand: some of these modules load libraries that take seconds.
    match name:
        case "arithmetic":
            return Arithmetic(source, levels)
        case "gsm8k":
            from rewards.gsm8k import Gsm8k

            return Gsm8k(source, revision, lenient)
        case "math":
            from rewards.competition_math import CompetitionMath

            return CompetitionMath(source, levels, subset, revision)
        case "mbpp":
            from rewards.mbpp import Mbpp

            return Mbpp(source, subset, revision, sandbox)
        case "humaneval":
            from rewards.humaneval import HumanEval

            return HumanEval(source, revision, sandbox)
        case "triviaqa":
            from rewards.triviaqa import TriviaQa

            return TriviaQa(source, revision)
        case _:
            raise InputError(
                f"no benchmark is called {name!r}; there are arithmetic, gsm8k, math, mbpp, humaneval and triviaqa"
            )


def _name(entry: BenchmarkConfig | ExamPart) -> str:
    return entry.name if isinstance(entry, BenchmarkConfig) else entry.benchmark


def _imported(name: str, source: str | None) -> Benchmark:
    """Return `module:Class` made with `source`, its class completed with the protocol's defaults."""
    module, _, class_name = name.partition(":")
    try:
        benchmark_class = getattr(importlib.import_module(module), class_name)
    except Exception as error:  # a user's module can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name} cannot be imported ({type(error).__name__}: {reason}); "
            "its module lies in rewards/ or on PYTHONPATH"
        ) from error
    benchmark = benchmark_class(source)
    for member in OPTIONAL_MEMBERS:
        if not hasattr(benchmark, member):
            setattr(type(benchmark), member, getattr(Benchmark, member))
    return benchmark


def _refuse_levels(name: str, levels: Sequence[str] | None) -> None:
    if levels is not None:
        raise InputError(f"{name}: its problems have no levels; remove `levels`")
