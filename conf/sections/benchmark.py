"""Which problems a night trains on and examines: the benchmark, where its data comes from, its subset and levels."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from conf.sections.section import HubRevision, Positive, Section

BenchmarkName = Literal[
    "arithmetic", "gsm8k", "math", "mbpp", "humaneval", "triviaqa", "questions", "instructions", "ants"
]

PROGRAMS = ("mbpp", "humaneval")  # benchmarks whose answers are programs, run in the sandbox
GENERATED = ("arithmetic", "instructions", "ants")  # benchmarks whose problems come with this package
SUBSETS = {"math": "500", "mbpp": "sanitized"}
LEVELS = ("1", "2", "3", "4", "5")
TIERS = ("0", "1", "2", "3", "4", "5", "6")  # the levels of ants
WITH_LEVELS = ("arithmetic", "gsm8k", "math", "ants")


def _names_a_class(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise ValueError("module:Class, one of your own (docs/how-to/your-own-benchmark.md)")
    return name


OwnBenchmark = Annotated[str, AfterValidator(_names_a_class)]


# Fields that training and the exam have in common. They choose the problems of a benchmark.
Source = Annotated[
    str | None,
    Field(description="folder of JSONL files (questions: the file); null: NIGHTSCHOOL_DATA if set, else the hub"),
]
Revision = Annotated[
    HubRevision | None, Field(description="branch, tag or commit of the dataset on the hub; null: the newest")
]
Subset = Annotated[
    str | None, Field(description='math: "500" for MATH-500; mbpp: "sanitized"; null: the whole benchmark')
]
Level = Annotated[str, BeforeValidator(lambda level: str(level) if type(level) is int else level)]  # as in [1, 2]
Levels = Annotated[
    Annotated[tuple[Level, ...], Field(min_length=1)] | None,
    Field(description="levels to use (gsm8k: calculations in a solution; ants: tiers); null: all (ants: only tier 0)"),
]
Colony = Annotated[
    int, Field(ge=1, le=25, description="ants: how many share a nest, each with turns and a context of its own")
]
Lenient = Annotated[bool, Field(description="gsm8k: grade the last number of an answer that has no marker (####)")]


class BenchmarkConfig(Section):
    """A benchmark that the night trains on."""

    name: BenchmarkName | OwnBenchmark = Field(description="a benchmark's name, or `module:Class` for your own")
    source: Source = None
    revision: Revision = None
    subset: Subset = None
    levels: Levels = None
    lenient: Lenient = False
    ants: Colony = 1
    weight: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="share of a round's prompts, relative to the other benchmarks' weights"
    )

    @model_validator(mode="after")
    def can_be_trained_on(self) -> Self:
        """Refuse settings that the benchmark does not support, and problems that are reserved for exams."""
        _check_choice(self.name, self)
        if self.name == "humaneval":
            raise ValueError("humaneval cannot be trained on: it has exam problems only; train on mbpp instead")
        if self.name == "instructions":
            raise ValueError("instructions cannot be trained on: it has exam problems only; use it in exam.guards")
        if self.name == "math" and self.subset:
            raise ValueError("MATH-500 cannot be trained on: it is part of the exam; remove `subset`")
        return self

    @property
    def label(self) -> str:
        """The benchmark's name, followed by its subset and levels if they are set: `math-1-2`."""
        return _label(self.name, self.subset, self.levels, self.ants)


class ExamPart(Section):
    """A part of the exam with its own problems and verdict: the target or a guard."""

    benchmark: BenchmarkName | OwnBenchmark = Field(description="a benchmark's name, or `module:Class` for your own")
    source: Source = None
    revision: Revision = None
    subset: Subset = None
    levels: Levels = None
    lenient: Lenient = False
    ants: Colony = 1
    problems: Positive | None = Field(
        default=None, description="number of problems: the first in a fixed random order of the test split; null: all"
    )
    margin: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="largest loss of accuracy allowed: for a guard, and for the target when picks decide"
    )
    samples: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=0, description="extra answers that `nightschool evaluate` samples per problem, for pass@k"
    )

    @model_validator(mode="after")
    def can_be_chosen(self) -> Self:
        """Refuse settings that the benchmark does not support."""
        _check_choice(self.benchmark, self)
        return self

    @property
    def name(self) -> str:
        """The benchmark's name, followed by its subset and levels if they are set: `math-500`, `arithmetic-1-2`."""
        return _label(self.benchmark, self.subset, self.levels, self.ants)


def _check_choice(name: str, entry: BenchmarkConfig | ExamPart) -> None:
    if entry.subset not in (None, SUBSETS.get(name)):
        known = f'the only subset of {name} is "{SUBSETS[name]}"' if name in SUBSETS else f"{name} has no subsets"
        raise ValueError(f'no subset "{entry.subset}"; {known}')
    if entry.levels is not None and name not in WITH_LEVELS:
        raise ValueError(f"{name}: its problems have no levels; remove `levels`")
    levels = levels_of(name)
    if unknown := sorted({*(entry.levels or ())} - {*levels}):
        raise ValueError(f"{name}: no level {', '.join(unknown)}; there are {', '.join(levels)}")
    if entry.lenient and name != "gsm8k":
        raise ValueError(f"only gsm8k can be read leniently, not {name}; remove `lenient`")
    if entry.ants > 1 and name != "ants":
        raise ValueError(f"only ants live in colonies, not {name}; remove `ants`")
    if name in GENERATED and (entry.source or entry.revision):
        raise ValueError(f"{name}: its problems come with the program; remove `source` and `revision`")
    if entry.revision and (entry.source or ":" in name):
        raise ValueError("a revision belongs to the hub, not to a folder or a benchmark of your own; remove `revision`")


def levels_of(name: str) -> tuple[str, ...]:
    """Return the levels of a benchmark that has levels, from the easiest on."""
    return TIERS if name == "ants" else LEVELS


def _label(name: str, subset: str | None, levels: tuple[str, ...] | None, ants: int) -> str:
    short = name.rpartition(":")[2].lower()  # without `module:`, because labels name folders and metrics
    several = [f"x{ants}"] if ants > 1 else []
    return "-".join([short, *([subset] if subset else []), *(levels or ()), *several])
