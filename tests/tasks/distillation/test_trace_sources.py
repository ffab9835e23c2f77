"""Worked solutions from files, the benchmarks and the student itself become traces; what is none is put aside."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, SandboxConfig
from conf.sections.lessons import TraceFile
from conf.storage.home import InputError
from rewards.competition_math import CompetitionMath
from tasks.distillation.trace_filter import Trace, counts, filter_traces, read_traces
from tasks.distillation.trace_sources import check_source, import_traces, own_answers, reference_solutions
from tasks.journal.tables import QUARANTINE, TRACES
from tasks.tables import read_table
from tests.rewards.datasets import needs_data, write_rows
from tests.tasks.doubles.tables import RIGHT, WRONG, run_stage, write_round

# --- files


def imported(tmp_path: Path, *files: TraceFile) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    folder = tmp_path / "import_traces"
    run_stage(import_traces, folder, files=files, own={"rewards.roman:Roman": "roman"})
    tables = ("traces", TRACES), ("quarantine", QUARANTINE)
    traces, quarantine = (read_table(folder / f"{name}.parquet", schema).to_dict("records") for name, schema in tables)
    return traces, quarantine


def asked(trace: dict[str, Any]) -> list[tuple[str, str]]:
    return [(turn["role"], turn["content"]) for turn in json.loads(trace["messages"])]


def jsonl(file: Path, *rows: Any) -> TraceFile:
    file.write_bytes(b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows))
    return TraceFile(source=str(file))


def test_rows_become_traces(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    rows = {"question": "2 + 2?", "solution": "4", "answer": 4, "teacher": "me"}, {"messages": turns}
    found, bad = imported(tmp_path, jsonl(tmp_path / "some.jsonl", *rows))
    assert not bad
    for number, (trace, truth, teacher) in enumerate(zip(found, ("4", None), ("me", "file"), strict=True), 1):
        assert (asked(trace), trace["response"], trace["benchmark"]) == ([("user", "2 + 2?")], "4", None)
        assert (trace["truth"], trace["teacher"], trace["source"]) == (truth, teacher, f"some.jsonl:{number}")


def test_the_question_is_asked_as_its_benchmark_asks(tmp_path: Path) -> None:
    prompt = "A conversation between User and Assistant.\n\nUser: What is $2 + 2$?\nAssistant: <think>"
    file = jsonl(
        tmp_path / "r1.jsonl",
        {"prompt": prompt, "response": " Four. </think> <answer> 4 </answer>", "ground_truth": "4"},
        {"prompt": f"{CompetitionMath.instruction}\nWhat is $2 + 2$?", "response": r"\boxed{4}", "ground_truth": "4"},
        {"prompt": "2 + 2?", "response": "#### 4", "ground_truth": "#### 4", "benchmark": "gsm8k"},
    )
    found, _ = imported(tmp_path, file.model_copy(update={"benchmark": "math", "teacher": "R1"}))
    assert asked(found[0]) == asked(found[1]) == [("user", f"{CompetitionMath.instruction}\nWhat is $2 + 2$?")]
    assert [trace["benchmark"] for trace in found] == ["math", "math", "gsm8k"]
    assert {trace["teacher"] for trace in found} == {"R1"}


def test_rows_of_an_own_benchmark_are_left_to_it(tmp_path: Path) -> None:
    """Only one of the night's: a file names no other code to run."""
    row = {"prompt": "Write 4 in Roman numerals.", "response": "Answer: IV", "ground_truth": "IV"}
    file = jsonl(tmp_path / "roman.jsonl", row, row | {"benchmark": "roman"})
    found, bad = imported(tmp_path, file.model_copy(update={"benchmark": "rewards.roman:Roman"}))
    assert not bad
    assert [(trace["benchmark"], trace["truth"]) for trace in found] == [("roman", "IV")] * 2
    assert asked(found[0]) == [("user", "Write 4 in Roman numerals.")]
    found, bad = imported(tmp_path / "other", file.model_copy(update={"benchmark": "os:getcwd"}))
    assert ([trace["benchmark"] for trace in found], len(bad)) == (["roman"], 1)
    assert "no benchmark is called 'os:getcwd'" in bad[0]["reason"]


def test_other_rows_go_to_the_quarantine(tmp_path: Path) -> None:
    """Why each kind of row makes no line: tests/tasks/journal/test_dataset_formats.py."""
    good = {"prompt": "2 + 2?", "response": "4"}
    found, bad = imported(
        tmp_path,
        jsonl(
            tmp_path / "bad.jsonl",
            good,
            b"<html>",
            b"",
            {"response": "4"},
            good | {"benchmark": "algebra"},
            good,
        ),
    )
    assert [trace["source"] for trace in found] == ["bad.jsonl:1", "bad.jsonl:6"]
    assert [row["line"] for row in bad] == [2, 4, 5]
    reasons = ("not valid JSON at column 1", "no question: ", "no benchmark is called 'algebra'")
    assert all(reason in row["reason"] for row, reason in zip(bad, reasons, strict=True))


def test_files_that_do_not_exist_or_are_damaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere.jsonl"):
        check_source(str(tmp_path / "nowhere.jsonl"))
    check_source("somebody/their-traces")
    (tmp_path / "no.parquet").write_bytes(b"PAR1?")
    with pytest.raises(InputError, match=r"no\.parquet: cannot be read"):
        imported(tmp_path, TraceFile(source=str(tmp_path / "no.parquet")))


@needs_data
def test_the_real_file(tmp_path: Path) -> None:
    """Every trace of the file is read, most are right, and all that are kept are so in MATH's own form."""
    from rewards.data.solution_formats import has_tags
    from rewards.symbolic.boxed import last_boxed

    source = str(Path(os.environ["NIGHTSCHOOL_DATA"]) / "traces" / "math_reasoning_traces.jsonl")
    _, bad = imported(tmp_path, TraceFile(source=source, benchmark="math", teacher="R1"))
    assert not bad
    traces = [*read_traces(tmp_path / "import_traces")]
    assert len(traces) == 1767
    found = filter_traces(traces, SandboxConfig(), (), 10_000, lambda trace: None)
    told = counts(found)
    assert told["kept"] + told["duplicate"] == 1748
    assert told["dropped"] == 19
    kept = [trace for trace in found if trace.fate == "kept"]
    assert all(last_boxed(trace.response) and not has_tags(trace.response) for trace in kept)
    assert all(trace.messages[-1]["content"].startswith(CompetitionMath.instruction) for trace in kept)
    assert not any("A conversation between" in trace.messages[-1]["content"] for trace in kept)
    few = filter_traces(traces, SandboxConfig(), (), 4, lambda trace: None)
    assert counts(few)["kept"] <= 4 * 128


# --- the benchmarks


def drawn(folder: Path, *sources: BenchmarkConfig, count: int = 4, seed: str = "1") -> list[Trace]:
    run_stage(reference_solutions, folder, sources=sources, sandbox=SandboxConfig(), count=count, seed=seed)
    return [*read_traces(folder)]


def test_the_easiest_problems_are_drawn_from(tmp_path: Path) -> None:
    rows = [{"question": f"How many? {n}", "answer": f"{'2+2=<<2+2=4>>4 ' * (1 + n % 3)}\n#### {n}"} for n in range(60)]
    source = write_rows(tmp_path / "train.jsonl", *rows)
    sources = (BenchmarkConfig(name="gsm8k", source=source), BenchmarkConfig(name="arithmetic", weight=9))
    first, again, other = (drawn(tmp_path / name, *sources, count=2, seed=name[0]) for name in ("1", "1b", "2"))
    assert [trace.response for trace in first] == [trace.response for trace in again]
    assert {trace.messages[0]["content"] for trace in first} != {trace.messages[0]["content"] for trace in other}
    assert len(first) == 2  # arithmetic has no solutions of its own
    for trace in (*first, *other):
        assert trace.response.startswith("2+2=4 \n#### ")
        assert (trace.teacher, trace.source.split("/")[0]) == ("dataset", "gsm8k:gsm8k")


@needs_data
def test_the_real_solutions_are_graded_as_correct(tmp_path: Path) -> None:
    sources = (
        BenchmarkConfig(name="gsm8k", weight=2),
        BenchmarkConfig(name="math", levels=("1", "2"), weight=2),
        BenchmarkConfig(name="mbpp"),
    )
    traces = drawn(tmp_path / "real", *sources, count=100)
    filtered = filter_traces(traces, SandboxConfig(), (), 4, lambda trace: None)
    fates = {name: [trace.fate for trace in filtered if trace.benchmark == name] for name in ("gsm8k", "math", "mbpp")}
    assert {name: len(found) for name, found in fates.items()} == {"gsm8k": 40, "math": 40, "mbpp": 20}
    assert fates["gsm8k"] == ["kept"] * 40
    for name in ("math", "mbpp"):
        assert fates[name].count("kept") >= 0.9 * len(fates[name])


# --- the student itself


def answers(tmp_path: Path, upto: int = 99, per_problem: int = 4) -> list[tuple[str, str]]:
    """Return questions and answers that the stage writes on 2026-11-20."""
    done = run_stage(
        own_answers,
        tmp_path / f"answers-{upto}-{per_problem}",
        model="starter",
        scores=(),
        upto=upto,
        per_problem=per_problem,
        date="2026-11-20",
        night=tmp_path / "nights/2026-11-20",
    )
    table = read_table(done.folder / "traces.parquet", TRACES)
    assert set(table.teacher) <= {"itself"}
    questions = [json.loads(messages)[0]["content"] for messages in table.messages]
    return list(zip(questions, table.response, strict=True))


def test_correct_answers_to_hard_problems_the_shortest_first(tmp_path: Path) -> None:
    attempts = {
        "hard": [("a longer way", 1.0), ("short", 1.0), ("short", 1.0), ("b", 1.0), *[WRONG] * 5],
        "even": [RIGHT, WRONG],
        "never": [WRONG] * 3,
        "ungraded": [RIGHT, ("?", None), ("?", None)],
    }
    write_round(tmp_path / "nights/2026-11-20/round-01", attempts)
    assert answers(tmp_path) == [("hard", "b"), ("hard", "short"), ("hard", "a longer way")]
    assert answers(tmp_path, per_problem=2) == [("hard", "b"), ("hard", "short")]


def test_attempts_of_rounds_refills_and_earlier_nights_are_added_up(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-18/round-02", {"one": [("old", 1.0)]})
    write_round(nights / "2026-11-20/round-01", {"one": [WRONG] * 2, "two": [RIGHT]})
    write_round(nights / "2026-11-20/round-02/refill-1", {"two": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-10", {"one": [("later", 1.0)]})
    write_round(nights / "2026-11-21/round-01", {"one": [("tomorrow", 1.0)]})
    assert answers(tmp_path) == [("two", "right")]
    assert answers(tmp_path, upto=2) == [("one", "old"), ("two", "right")]
    assert answers(tmp_path, upto=1) == [("one", "old")]
