"""The benchmarks' own solutions as traces: the easiest first, by weight, and right in their benchmark's eyes."""

from pathlib import Path

from conf.schema import BenchmarkConfig, SandboxConfig
from tasks.distillation.trace_filter import draw_lessons, filter_traces, read_traces
from tasks.distillation.trace_sources import reference_solutions
from tests.rewards.datasets import needs_data, write_rows
from tests.tasks.doubles.tables import run_stage


def drawn(folder: Path, *sources: BenchmarkConfig, count: int = 4, seed: str = "1") -> list:
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


def test_others_solutions_go_first(tmp_path: Path) -> None:
    rows = [{"question": f"How many? {n}", "answer": f"#### {n}"} for n in range(60)]
    source = write_rows(tmp_path / "train.jsonl", *rows)
    own = drawn(tmp_path / "a", BenchmarkConfig(name="gsm8k", source=source), count=8)
    mixed = [*own[:6], *(type(own[0])(**vars(trace) | {"teacher": "me"}) for trace in own[6:])]
    fates = [trace.fate for trace in draw_lessons(mixed, 3, "tonight")]
    assert fates[6:] == ["unknown", "unknown"]
    assert fates[:6].count("unknown") == 1
