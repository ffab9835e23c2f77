"""A benchmark by the name that a configuration calls it."""

import importlib
from collections.abc import Sequence

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.verifier import Benchmark, Split

DEFAULT_SANDBOX = SandboxConfig()
MODULES = ("arithmetic", "gsm8k", "competition_math", "mbpp", "humaneval", "triviaqa")  # whose classes `load` knows


def configured(entry: BenchmarkConfig | ExamPart, sandbox: SandboxConfig = DEFAULT_SANDBOX) -> Benchmark:
    """The benchmark that an entry of the configuration means. Reads no data yet; raises InputError as `load` does.

    An entry alone may name a class of the user's own, `module:Class`: a name in data would be code to run.
    """
    name = entry.name if isinstance(entry, BenchmarkConfig) else entry.benchmark
    if ":" in name:
        _no_levels(name, entry.levels)
        return _own(name, entry.source)
    return load(
        name,
        entry.source,
        entry.levels,
        subset=entry.subset,
        revision=entry.revision,
        lenient=entry.lenient,
        sandbox=sandbox,
    )


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
    """The benchmark `name`, its data from `source` (a folder; None: its default), only `levels` (None: all).

    `revision` pins the hub's dataset; `subset` is "500" of math or "sanitized" of mbpp; `lenient` is GSM8K's; `sandbox`
    is where mbpp and humaneval run programs. Reads no data yet. Raises InputError for an unknown name, source or level.
    """
    # Imported where they are meant: some bring libraries that take a second.
    match name:
        case "arithmetic":
            return Arithmetic(source, levels)
        case "gsm8k":
            from rewards.gsm8k import Gsm8k

            return Gsm8k(source, levels, revision, lenient)
        case "math":
            from rewards.competition_math import CompetitionMath

            return CompetitionMath(source, levels, subset, revision)
        case "mbpp":
            from rewards.jail.layers import tolerated
            from rewards.mbpp import Mbpp

            _no_levels(name, levels)
            return Mbpp(
                source, subset, revision, sandbox.seconds, sandbox.memory_mb, sandbox.workers, tolerated(sandbox)
            )
        case "humaneval":
            from rewards.humaneval import HumanEval
            from rewards.jail.layers import tolerated

            _no_levels(name, levels)
            return HumanEval(source, revision, sandbox.seconds, sandbox.memory_mb, sandbox.workers, tolerated(sandbox))
        case "triviaqa":
            from rewards.triviaqa import TriviaQa

            _no_levels(name, levels)
            return TriviaQa(source, revision)
        case _:
            raise InputError(
                f"no benchmark is called {name!r}; there are arithmetic, gsm8k, math, mbpp, humaneval and triviaqa"
            )


def excluded(benchmark: Benchmark, split: Split) -> list[str]:
    """The problems that a benchmark left out when it last read the split, because their own truth cannot be read."""
    return list(getattr(benchmark, "excluded", {}).get(split, ()))


def is_own(benchmark: Benchmark) -> bool:
    """Whether a benchmark is of a class of the user's own."""
    return type(benchmark).__module__ not in [f"rewards.{module}" for module in MODULES]


def _own(name: str, source: str | None) -> Benchmark:
    """What `module:Class` makes of the source."""
    module, _, of_class = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), of_class)
    except Exception as error:  # whatever a file of the user's own comes up with
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name} cannot be imported ({type(error).__name__}: {reason}); "
            "its module lies in rewards/ or on PYTHONPATH"
        ) from error
    return found(source)


def _no_levels(name: str, levels: Sequence[str] | None) -> None:
    if levels is not None:
        raise InputError(f"{name}: its problems have no levels; remove `levels`")
