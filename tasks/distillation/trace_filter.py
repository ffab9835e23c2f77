"""Filter worked solutions: keep those that are correct or cannot be judged, and put them in the benchmark's format."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from conf.schema import SandboxConfig
from conf.sections.benchmark import BenchmarkName
from models.lessons.preference_data import opening
from rewards.data import benchmarks
from rewards.data.contamination import Match, exam_index
from rewards.data.former_prompts import asked_now
from rewards.data.solution_formats import Solution, has_tags, marked_truth, read_question, read_solution, rewritten
from rewards.verifier import Attempt, Benchmark, Problem, Score
from tasks.journal.tables import TRACES
from tasks.rollouts.grade import scores_of
from tasks.tables import table_rows

Fate = Literal[
    "kept",  # its answer is correct
    "unknown",  # also kept: it has no truth, its benchmark is not found, or the grader failed
    "dropped",  # its answer is wrong
    "unreadable",  # no answer can be found in it
    "exam",  # it asks a problem of the exam
    "held_out",  # it opens like a conversation that is held out to test the reward model
    "refused",  # the student's chat template refuses it
    "too_long",
    "duplicate",
    "surplus",  # its problem already has enough solutions
    "later",  # the lesson's steps have no room for it
    "known",  # the student already solves its problem
]
FATES: tuple[Fate, ...] = get_args(Fate)
LEARNED: tuple[Fate, ...] = ("kept", "unknown")
DATASET = "dataset"  # the `teacher` of a benchmark's own solutions

NO_PROBLEMS: Mapping[str, Problem] = {}


@dataclass(frozen=True)
class Trace:
    """A worked solution in the form used for training.

    `exam`: the exam question that it matches, or None. `lesson`: its lesson's name; None if it is not from the journal.
    """

    messages: list[dict[str, str]]
    response: str
    teacher: str
    benchmark: str | None
    truth: str | None
    source: str | None
    lesson: str | None = None
    fate: Fate = "unknown"
    exam: Match | None = None


def read_traces(folder: Path) -> Iterator[Trace]:
    """Yield the rows of a stage's traces table as `Trace` objects."""
    for row in table_rows(folder / "traces.parquet", TRACES):
        del row["day"]
        yield Trace(**row | {"messages": json.loads(row["messages"])})


def filter_traces(
    traces: Sequence[Trace],
    sandbox: SandboxConfig,
    exam_questions: Sequence[str],
    per_problem: int,
    unfit: Callable[[Trace], Fate | None],
    unseen: Collection[str] = (),
    user_benchmarks: Sequence[Benchmark] = (),
) -> list[Trace]:
    """Return the traces in order, each with its fate and, if necessary, rewritten in its benchmark's format.

    `per_problem`: the maximum number of solutions per prompt; more get the fate `surplus`. Datasets' own solutions are
    counted by their source instead, because different episodes may have the same first observation. `unfit`: returns
    the fate of a trace that cannot be trained on, else None. `unseen`: openings of conversations that no lesson may
    contain. `user_benchmarks`: the user's own benchmarks, in addition to the built-in ones.
    """
    exam = exam_index(tuple(exam_questions))
    texts = ([*(message["content"] for message in trace.messages), trace.response] for trace in traces)
    traces = [replace(trace, exam=exam.match_any(each)) for trace, each in zip(traces, texts, strict=True)]
    filtered: list[Trace] = []
    seen: set[tuple[str, str]] = set()
    solutions: Counter[str] = Counter()
    for original, trace in zip(traces, _graded(traces, sandbox, user_benchmarks), strict=True):
        prompt = json.dumps(trace.messages)
        problem = str(trace.source) if trace.teacher == DATASET else prompt
        if trace.exam:
            trace = replace(trace, fate="exam")
        elif opening(original.messages) in unseen:
            trace = replace(trace, fate="held_out")
        elif trace.fate in LEARNED:
            if (prompt, trace.response) in seen:
                trace = replace(trace, fate="duplicate")
            elif (fate := unfit(trace)) is not None:
                trace = replace(trace, fate=fate)
            elif solutions[problem] == per_problem:
                trace = replace(trace, fate="surplus")
            else:
                solutions[problem] += 1
            seen.add((prompt, trace.response))
        filtered.append(trace)
    return filtered


def draw_lessons(traces: Sequence[Trace], room: int, seed: str) -> list[Trace]:
    """Draw up to `room` trainable traces with the seed. Return all traces; the trainable ones not drawn become `later`.

    A trace is trainable if its fate is in `LEARNED`. Datasets' own solutions fill only the room that the others leave.
    """
    chance, drawn = random.Random(seed), set[int]()
    worth = [index for index, trace in enumerate(traces) if trace.fate in LEARNED]
    for is_dataset in (False, True):
        group = [index for index in worth if (traces[index].teacher == DATASET) is is_dataset]
        drawn |= {*chance.sample(group, min(room - len(drawn), len(group)))}
    later = {*worth} - drawn
    return [replace(trace, fate="later") if index in later else trace for index, trace in enumerate(traces)]


def benchmark_of(name: str | None, sandbox: SandboxConfig, own: Sequence[Benchmark]) -> Benchmark | None:
    """Return the benchmark with this name, from the user's `own` or the built-in ones; None if the name is unknown."""
    found = next((benchmark for benchmark in own if benchmark.name == name), None)
    if found is None and name in get_args(BenchmarkName):
        return benchmarks.load(str(name), sandbox)
    return found


def problems_by_prompt(benchmark: Benchmark) -> dict[str, Problem]:
    """Return a benchmark's training problems by their prompts: a user's grader may need more than prompt and truth."""
    return {benchmark.prompt(problem): problem for problem in benchmark.problems("train")}


def _graded(traces: Sequence[Trace], sandbox: SandboxConfig, user_benchmarks: Sequence[Benchmark]) -> list[Trace]:
    """Return the traces as graded by their benchmarks. A trace whose benchmark cannot grade it is unchanged.

    Grading is strict, even if the night's rounds are lenient. Each benchmark grades all of its traces in one call.
    """
    graded = list(traces)
    indices: dict[str | None, list[int]] = defaultdict(list)
    for index, trace in enumerate(traces):
        indices[trace.benchmark].append(index)
    for name, rows in indices.items():
        if (benchmark := benchmark_of(name, sandbox, user_benchmarks)) is None:
            continue
        if benchmark not in user_benchmarks and ("train" not in benchmark.splits or benchmark.environment):
            continue
        asked = [_asked_now(traces[row], benchmark) for row in rows]
        if benchmark in user_benchmarks:
            new = _grade(asked, benchmark, problems_by_prompt(benchmark))
        else:
            new = _graded_and_rewritten(asked, benchmark)
        for row, trace in zip(rows, new, strict=True):
            graded[row] = trace
    return graded


def _asked_now(trace: Trace, benchmark: Benchmark) -> Trace:
    *before, last = trace.messages
    return replace(trace, messages=[*before, last | {"content": asked_now(last["content"], benchmark)}])


def _graded_and_rewritten(traces: Sequence[Trace], benchmark: Benchmark) -> list[Trace]:
    """Return a built-in benchmark's traces, graded and, if necessary, rewritten in the benchmark's format.

    A trace keeps its text if it has no tags such as `<think>` and the benchmark finds an answer in it. Any other trace
    is rewritten; it is not kept if the grader then rejects the whole new text or its bare answer. If a trace has no
    truth, its own answer serves as the truth, but only to test whether the benchmark finds that answer.
    """
    rewrites = benchmark.answer_line is not None
    solutions = [read_solution(trace.response) if rewrites else None for trace in traces]
    with_truths = list[Trace]()
    for trace, solution in zip(traces, solutions, strict=True):
        truth = solution.answer if trace.truth is None and solution else trace.truth
        with_truths.append(trace if truth is None else replace(trace, truth=marked_truth(truth, benchmark)))
    tried = _grade(with_truths, benchmark)
    graded = [original if original.truth is None else trace for original, trace in zip(traces, tried, strict=True)]
    if not rewrites:
        return graded
    rows: list[tuple[int, Solution]] = []
    for row, (trace, solution) in enumerate(zip(tried, solutions, strict=True)):
        if trace.fate != "unreadable" and not has_tags(trace.response):
            continue
        if solution is None:
            graded[row] = replace(graded[row], fate="unreadable")
        else:
            rows.append((row, solution))
    whole = [_rewrite(graded[row], solution, benchmark) for row, solution in rows]
    bare = [_rewrite(graded[row], Solution("", solution.answer), benchmark) for row, solution in rows]
    whole, bare = _grade(whole, benchmark), _grade(bare, benchmark)
    for (row, _), trace, answer in zip(rows, whole, bare, strict=True):
        graded[row] = trace if answer.fate in ("kept", trace.fate) else replace(trace, fate=answer.fate)
    return graded


def _rewrite(trace: Trace, solution: Solution, benchmark: Benchmark) -> Trace:
    """Return the trace with the solution in the benchmark's format and the benchmark's prompt as its last turn."""
    *before, last = trace.messages
    prompt = benchmark.prompt(_problem(trace, read_question(last["content"], benchmark)))
    response = rewritten(solution, benchmark) or ""
    return replace(trace, messages=[*before, last | {"content": prompt}], response=response)


def _grade(traces: Sequence[Trace], benchmark: Benchmark, problems: Mapping[str, Problem] = NO_PROBLEMS) -> list[Trace]:
    """Return the traces with fates that reflect the grader's verdicts. Traces without a truth are unchanged.

    `problems`: maps prompts to the benchmark's problems. For other prompts, the problem is built from the trace.
    """
    attempts = [
        Attempt(problems.get(prompt := trace.messages[-1]["content"]) or _problem(trace, prompt), trace.response)
        for trace in traces
        if trace.truth is not None
    ]
    scores = iter(scores_of(benchmark, attempts) if attempts else [])
    return [trace if trace.truth is None else replace(trace, fate=_fate(next(scores))) for trace in traces]


def _fate(score: Score) -> Fate:
    if score.reward is None:
        return "unknown"
    return {"correct": "kept", "no_answer": "unreadable"}.get(score.verdict, "dropped")  # pyrefly: ignore[bad-return]


def _problem(trace: Trace, question: str) -> Problem:
    return Problem("trace", trace.benchmark or "", question, trace.truth or "")


def counts(traces: Sequence[Trace]) -> dict[str, int]:
    """Return the number of traces with each fate."""
    return {fate: sum(trace.fate == fate for trace in traces) for fate in FATES}


def counts_by_source(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Return `counts` for each pair of teacher and source (e.g. a file or a day's journal)."""
    groups: dict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        groups[trace.teacher, (trace.source or "").rpartition(":")[0] or trace.source or ""].append(trace)
    return [
        {"teacher": teacher, "source": source} | counts(group) for (teacher, source), group in sorted(groups.items())
    ]


def write_fates(folder: Path, traces: Sequence[Trace]) -> None:
    """Write the number of traces with each fate, in total and by source, and list those that match an exam question."""
    (folder / "counts.json").write_text(json.dumps(counts(traces)))
    (folder / "sources.json").write_text(json.dumps(counts_by_source(traces)))
    matches = [
        {
            "source": trace.source,
            "asked": trace.messages[-1]["content"],
            "question": trace.exam.question,
            "match": trace.exam.kind,
            "share": trace.exam.share,
        }
        for trace in traces
        if trace.exam
    ]
    (folder / "contamination.json").write_text(json.dumps(matches, indent=1))
