"""Which worked solutions are worth learning: right ones and those nobody can judge, in the benchmark's own form."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import pandas as pd

from conf.schema import SandboxConfig
from conf.sections.benchmark import PROGRAMS, BenchmarkName
from models.lessons.preference_data import opening
from rewards import benchmarks
from rewards.contamination import Contamination, Match, exam_index
from rewards.data.solution_formats import Solution, has_tags, own_truth, read_question, read_solution, written
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.rollouts.score import scores_of

# kept: its answer is right; unknown: kept too, nobody can tell; dropped: its answer is not the truth; unreadable: no
# answer can be found in it; exam: it asks a problem of the exam; held_out: it opens as a conversation that judges the
# reward model; refused: by the student's chat template; surplus: its problem has enough solutions already; later: the
# lesson's steps have no room for it.
Fate = Literal[
    "kept",
    "unknown",
    "dropped",
    "unreadable",
    "exam",
    "held_out",
    "refused",
    "too_long",
    "duplicate",
    "surplus",
    "later",
]
FATES: tuple[Fate, ...] = get_args(Fate)

NO_PROBLEMS: Mapping[str, Problem] = {}


@dataclass(frozen=True)
class Trace:
    """A worked solution, as it would be learnt. `exam`: the exam's question that it asks."""

    messages: list[dict[str, str]]
    response: str
    teacher: str
    benchmark: str | None
    truth: str | None
    source: str | None
    fate: Fate = "unknown"
    exam: Match | None = None


def traces_of(table: pd.DataFrame) -> list[Trace]:
    """The rows of a traces table; on which night they first came is not asked."""
    rows: list[dict[str, Any]] = table.drop(columns="night").to_dict("records")  # pyright: ignore
    return [Trace(**row | {"messages": json.loads(row["messages"])}) for row in rows]


def judged(
    traces: Sequence[Trace],
    sandbox: SandboxConfig,
    exam_questions: Sequence[str],
    per_problem: int,
    unfit: Callable[[Trace], Fate | None],
    unseen: Collection[str] = (),
    own: Sequence[Benchmark] = (),
) -> list[Trace]:
    """Each trace with its fate, in the same order, in its benchmark's own form where it came in another one.

    `per_problem`: at most so many solutions of one prompt are kept, the first ones. `unfit`: the fate of a trace that
    cannot be learnt as it is. `unseen`: openings of conversations that no lesson may see. `own`: benchmarks of the
    user's own.
    """
    exam = exam_index(tuple(exam_questions))
    traces = [replace(trace, exam=_asked_in(exam, trace)) for trace in traces]
    found: list[Trace] = []
    seen: set[tuple[str, str]] = set()
    solutions: Counter[str] = Counter()
    for came, trace in zip(traces, _graded(traces, sandbox, own), strict=True):
        asked = json.dumps(trace.messages)
        if trace.exam:
            trace = replace(trace, fate="exam")
        elif opening(came.messages) in unseen:
            trace = replace(trace, fate="held_out")
        elif trace.fate in ("kept", "unknown"):
            if (asked, trace.response) in seen:
                trace = replace(trace, fate="duplicate")
            elif (why := unfit(trace)) is not None:
                trace = replace(trace, fate=why)
            elif solutions[asked] == per_problem:
                trace = replace(trace, fate="surplus")
            else:
                solutions[asked] += 1
            seen.add((asked, trace.response))
        found.append(trace)
    return found


def with_room(traces: Sequence[Trace], room: int, seed: str) -> list[Trace]:
    """The traces; of those that are worth learning only so many, drawn by the seed, and the others come `later`."""
    worth = [place for place, trace in enumerate(traces) if trace.fate in ("kept", "unknown")]
    drawn = {*random.Random(seed).sample(worth, min(room, len(worth)))}
    left = {*worth} - drawn
    return [replace(trace, fate="later") if place in left else trace for place, trace in enumerate(traces)]


def _asked_in(exam: Contamination, trace: Trace) -> Match | None:
    return exam.match_any([*(message["content"] for message in trace.messages), trace.response])


def _graded(traces: Sequence[Trace], sandbox: SandboxConfig, own: Sequence[Benchmark]) -> list[Trace]:
    """What a trace's own benchmark says of it; `unknown` where that or a truth is missing, or its grader cannot tell.

    Strictly, whatever readings the night allows itself; each benchmark judges all of its traces at once. A trace in the
    benchmark's own form stays word for word what it is; any other is rewritten, and judged once more. That
    of a benchmark of the user's `own` is not known here.
    """
    found = list(traces)
    places: dict[str | None, list[int]] = defaultdict(list)
    for place, trace in enumerate(traces):
        places[trace.benchmark].append(place)
    for name in get_args(BenchmarkName):
        if not (asking := places[name]):
            continue
        benchmark = benchmarks.load(name, sandbox=sandbox)
        for place in asking:
            found[place] = _with_truth(found[place])
        _grade(found, asking, benchmark)
        if name not in PROGRAMS:
            _rewrite(found, _in_another_form(found, asking, benchmark), benchmark)
    for benchmark in own:
        if asking := places[benchmark.name]:
            _grade(found, asking, benchmark, {benchmark.prompt(one): one for one in benchmark.problems("train")})
    return found


def _in_another_form(found: Sequence[Trace], places: Sequence[int], benchmark: Benchmark) -> list[int]:
    """Those whose answer the benchmark does not find, or that have tags. One without a truth is tried with its own."""
    told = {
        place: replace(found[place], truth=own_truth(solution.answer, benchmark.name))
        for place in places
        if found[place].truth is None and (solution := read_solution(found[place].response))
    }
    _grade(told, list(told), benchmark)
    return [at for at in places if told.get(at, found[at]).fate == "unreadable" or has_tags(found[at].response)]


def _rewrite(found: list[Trace], places: Sequence[int], benchmark: Benchmark) -> None:
    """Rewrites these traces. What was right must be right by its answer alone, and again as a whole."""
    solutions = {place: solution for place in places if (solution := read_solution(found[place].response))}
    for place in set(places) - solutions.keys():
        found[place] = replace(found[place], fate="unreadable")
    whole = {place: _written(found[place], solution, benchmark) for place, solution in solutions.items()}
    alone = {
        place: replace(whole[place], response=written(Solution("", solution.answer), benchmark.name) or "")
        for place, solution in solutions.items()
    }
    _grade(alone, list(alone), benchmark)
    _grade(whole, list(whole), benchmark)
    for place, trace in whole.items():
        found[place] = trace if alone[place].fate in ("kept", trace.fate) else replace(trace, fate=alone[place].fate)


def _written(trace: Trace, solution: Solution, benchmark: Benchmark) -> Trace:
    """The trace in the benchmark's form, its last turn asked as the benchmark asks."""
    *before, last = trace.messages
    asked = benchmark.prompt(_problem(trace, read_question(last["content"], benchmark)))
    response = written(solution, benchmark.name) or trace.response
    return replace(trace, messages=[*before, last | {"content": asked}], response=response)


def _grade(
    found: Any, places: Sequence[int], benchmark: Benchmark, problems: Mapping[str, Problem] = NO_PROBLEMS
) -> None:
    """Judges these traces where they have a truth. `found`: traces by place, a list or a mapping.

    `problems`: by the prompt that asks it; one that is not among them is made of the trace.
    """
    known = [place for place in places if found[place].truth is not None]
    asked = {place: found[place].messages[-1]["content"] for place in known}
    attempts = [Attempt(problems.get(asked[at]) or _problem(found[at], asked[at]), found[at].response) for at in known]
    for place, score in zip(known, scores_of(benchmark, attempts) if known else [], strict=True):
        found[place] = replace(found[place], fate=_fate(score))


def _fate(score: Score) -> Fate:
    if score.reward is None:
        return "unknown"
    return {"correct": "kept", "no_answer": "unreadable"}.get(score.verdict, "dropped")  # pyright: ignore


def _with_truth(trace: Trace) -> Trace:
    assert trace.benchmark is not None
    return trace if trace.truth is None else replace(trace, truth=own_truth(trace.truth, trace.benchmark))


def _problem(trace: Trace, question: str) -> Problem:
    return Problem("trace", trace.benchmark or "", question, trace.truth or "")


def counts(traces: Sequence[Trace]) -> dict[str, int]:
    """How many traces had each fate."""
    return dict.fromkeys(FATES, 0) | Counter(trace.fate for trace in traces)


def by_source(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The same by teacher and by where the traces came from: a file, a day's journal, a teacher asked by night."""
    groups: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.teacher, (trace.source or "").rpartition(":")[0] or trace.source or ""].append(trace)
    return [{"teacher": teacher, "source": source} | counts(own) for (teacher, source), own in sorted(groups.items())]
