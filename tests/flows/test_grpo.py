"""Whole rounds on the real stages, trainer, Prefect and MLflow; only the engine's answers are from a script."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from flows.run.history import round_metrics
from tasks.monitoring.round_alarms import round_alarms
from tasks.report.queries import sampled_answers, verdict_counts
from tasks.tables import PROMPTS, SOLVE_RATES, read_rollouts, read_table
from tasks.tracking import Tracking
from tests.flows.rounds import DATE, SCRIPT, School, ScriptedEngine


@pytest.fixture(scope="module")
def finished(school: School) -> tuple[Path, ScriptedEngine, Path]:
    """An undisturbed night."""
    engine = ScriptedEngine(school.student, SCRIPT)
    folder, candidate = school.study("undisturbed", engine)
    return folder, engine, candidate


def passes(folder: Path, number: int) -> list[Path]:
    place = folder / f"round-0{number}"
    return [place, *sorted(place.glob("refill-*"))]


def test_groups_without_signal_are_replaced_up_to_the_limit(finished: tuple[Path, ScriptedEngine, Path]) -> None:
    folder, engine, _ = finished
    assert [len(numbers) for numbers in engine.asked] == [4, 4, 4, 4, 4, 4, 1]
    assert [[one.name for one in passes(folder, number)] for number in (1, 2, 3)] == [
        ["round-01"],
        ["round-02", "refill-1", "refill-2"],
        ["round-03", "refill-1", "refill-2"],
    ]
    names = ("refills", "replaced_groups", "groups", "useful_groups", "signal_share", "skipped")
    assert [[metrics[name] for name in names] for metrics in round_metrics(folder)] == [
        [0, 0, 4, 4, 1.0, 0],
        [2, 8, 12, 0, 0.0, 1],
        [2, 5, 9, 3, pytest.approx(1 / 3), 0],
    ]
    for number, metrics in enumerate(round_metrics(folder), 1):  # what the flow goes by is what the trainer finds
        signal = [json.loads((one / "credit" / "signal.json").read_text()) for one in passes(folder, number)]
        assert sum(one["groups"] for one in signal) == metrics["groups"]
        assert sum(one["with_signal"] for one in signal) == metrics["useful_groups"]


def test_the_two_newest_states_and_checkpoints_stay(finished: tuple[Path, ScriptedEngine, Path]) -> None:
    """The last round's, and its predecessor's, from which it would be taken again; and the base."""
    folder, _, candidate = finished
    made = [(folder / f"round-0{number}" / "checkpoint" / "checkpoint.txt").read_text() for number in (1, 2, 3)]
    assert made[-1] == candidate.name
    assert sorted(state.name for state in (folder / "state").iterdir()) == ["round-02", "round-03"]
    kept = {checkpoint.name for checkpoint in candidate.parent.iterdir()}
    assert made[0] not in kept
    assert kept >= set(made[1:])
    assert len(kept) == 3


def test_no_problem_is_drawn_twice_in_a_round_and_no_seed_used_twice(
    finished: tuple[Path, ScriptedEngine, Path],
) -> None:
    _, engine, _ = finished
    for calls in (engine.asked[1:4], engine.asked[4:7]):
        drawn = [number for numbers in calls for number in numbers]
        assert len(set(drawn)) == len(drawn)
    assert len(set(engine.seeds)) == 7


def test_groups_are_numbered_on_through_the_refills(finished: tuple[Path, ScriptedEngine, Path]) -> None:
    folder, engine, _ = finished
    sampled = [r for one in passes(folder, 3) for r in read_rollouts(one / "sample" / "rollouts.parquet")]
    assert [(r.group, r.sample) for r in sampled] == [(group, sample) for group in range(9) for sample in range(2)]
    asked = [number for numbers in engine.asked[4:] for number in numbers]
    assert [r.problem_id for r in sampled[::2]] == [f"gsm8k/train/{number}" for number in asked]
    prompts = [row for one in passes(folder, 3) for row in table(one / "select_prompts/prompts", PROMPTS)]
    assert [row["group"] for row in prompts] == list(range(9))


def test_solve_rates_fade_between_rounds_and_not_within_one(finished: tuple[Path, ScriptedEngine, Path]) -> None:
    folder, _, _ = finished
    last = [passes(folder, number)[-1] / "score" / "solve_rates" for number in (1, 2, 3)]
    tried = [sum(row["tried"] for row in table(file, SOLVE_RATES)) for file in last]
    assert tried == pytest.approx([8, 0.7 * 8 + 24, 0.7 * (0.7 * 8 + 24) + 18])
    solved = [sum(row["solved"] for row in table(file, SOLVE_RATES)) for file in last]
    assert solved == pytest.approx([4, 0.7 * 4 + 6, 0.7 * (0.7 * 4 + 6) + 7])


def table(file: Path, schema: Any) -> list[dict[str, Any]]:
    rows: Any = read_table(file.with_suffix(".parquet"), schema).to_dict("records")
    return rows


def test_a_round_without_any_signal_takes_no_step_and_is_an_alarm(
    finished: tuple[Path, ScriptedEngine, Path],
) -> None:
    folder, _, candidate = finished
    steps = [figures.get("loss") is not None for figures in round_metrics(folder)]
    assert steps == [True, False, True]
    idle, learned = (folder / f"round-0{number}/checkpoint/checkpoint.txt" for number in (2, 3))
    assert learned.read_text() == candidate.name != idle.read_text()
    alarms = {alarm.name: alarm for alarm in round_alarms(round_metrics(folder))}
    assert alarms["skipped_updates"].sentence == "No step was taken in round 2: too few groups had a signal."
    assert not any(alarm.severe for alarm in alarms.values())
    assert round_alarms(round_metrics(folder)[1:2])[0].sentence.startswith("Hardly any group had a signal (0 %)")


def test_the_figures_tell_what_was_hoped_for_and_where_the_time_went(
    finished: tuple[Path, ScriptedEngine, Path], school: School
) -> None:
    folder, _, _ = finished
    first, second, third = round_metrics(folder)
    assert not {"expected_signal_share", "even_signal_share"} & first.keys()  # nothing was known yet
    for metrics in (second, third):
        assert 0 < metrics["even_signal_share"] < 0.5001  # at most 2p(1 − p): two completions, one of them right
        assert 0 < metrics["expected_signal_share"] < 0.5001
    assert [metrics["seconds_generate"] for metrics in (first, second, third)] == [0.5, 1.5, 1.5]
    assert [metrics["seconds_sync"] for metrics in (first, second, third)] == [0.25, 0.75, 0.75]
    for metrics in (first, second, third):
        named = ("select_prompts", "sample", "score", "credit", "update", "checkpoint")
        assert all(metrics[f"seconds_{name}"] > 0 for name in named)
        assert metrics["seconds_round"] > metrics["seconds_update"]
    client = Tracking(school.home("undisturbed"), load_night(STARTER)).client
    run = (folder / "mlflow_run.txt").read_text()
    shown = client.get_metric_history(run, "reward/replaced_groups")
    assert [(metric.step, metric.value) for metric in shown] == [(1, 0), (2, 8), (3, 5)]


def test_the_report_sees_the_refills(finished: tuple[Path, ScriptedEngine, Path]) -> None:
    folder, engine, _ = finished
    assert verdict_counts(folder)["training"].to_dict() == {"correct": 17, "wrong": 33}
    solved = {answer.question for answer in sampled_answers(folder) if answer.verdict == "correct"}
    numbers = [*engine.asked[4], *engine.asked[5], *engine.asked[6]]
    first, refilled = ({f"How many? {numbers[group]}" for group in groups} for groups in ((2,), (4, 6, 7, 8)))
    assert solved <= first | refilled
    assert solved & refilled


def test_a_night_killed_in_a_refill_goes_on_to_the_same_end(
    finished: tuple[Path, ScriptedEngine, Path], school: School
) -> None:
    """Of the last round stand the first pass, and the prompts of its first refill."""
    undisturbed, whole, expected = finished
    shutil.copytree(school.home("undisturbed").root, school.root / "killed")
    place = school.home("killed").night(DATE) / "round-03"
    for lost in ("refill-1/sample", "refill-1/score", "refill-1/credit", "refill-2", "checkpoint"):
        shutil.rmtree(place / lost)
    shutil.rmtree(school.home("killed").checkpoints / expected.name)
    engine = ScriptedEngine(school.student, SCRIPT[5:])
    folder, candidate = school.study("killed", engine)
    assert (engine.asked, engine.seeds) == (whole.asked[5:], whole.seeds[5:])
    assert candidate.name == expected.name
    timed = ["seconds_round" in metrics for metrics in round_metrics(folder)]
    assert timed == [True, True, False]  # of a round that was cut in two nobody knows how long it took
    for number in ("01", "02"):
        metrics = f"round-{number}/checkpoint/metrics.json"
        assert (folder / metrics).read_bytes() == (undisturbed / metrics).read_bytes()


def test_a_small_benchmark_is_used_up(school: School) -> None:
    engine = ScriptedEngine(school.student, [(0, 0, 0, 1), (0, 2)])
    folder, _ = school.study("small", engine, "grpo.rounds=1", "grpo.refills=5", problems=6)
    assert sorted(number for numbers in engine.asked for number in numbers) == list(range(6))
    (metrics,) = round_metrics(folder)
    assert [metrics[name] for name in ("refills", "replaced_groups", "groups", "useful_groups")] == [1, 2, 6, 1]


def test_without_refills_nothing_is_replaced(school: School) -> None:
    engine = ScriptedEngine(school.student, [(0, 0, 1, 1)])
    folder, _ = school.study("plain", engine, "grpo.rounds=1", "grpo.refills=0")
    assert passes(folder, 1) == [folder / "round-01"]
    (metrics,) = round_metrics(folder)
    names = ("refills", "replaced_groups", "groups", "useful_groups", "skipped")
    assert [metrics[name] for name in names] == [0, 0, 4, 2, 0]


def kept_alarms(folder: Path) -> dict[str, dict[str, Any]]:
    return {alarm["name"]: alarm for alarm in json.loads((folder / "alarms.json").read_text())}


def test_alarms_are_raised_while_the_night_runs(finished: tuple[Path, ScriptedEngine, Path], school: School) -> None:
    """By the figures that the trainer just reported, before they are durable; the rounds go on."""
    folder, _, _ = finished
    alarm = kept_alarms(folder)["skipped_updates"]
    assert (alarm["severe"], alarm["round"]) == (False, 2)
    client = Tracking(school.home("undisturbed"), load_night(STARTER)).client
    tags = client.get_run((folder / "mlflow_run.txt").read_text()).data.tags
    assert tags["alarm.skipped_updates"] == alarm["sentence"]


def test_a_severe_alarm_ends_the_learning_for_good(
    school: School, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone on with, when there is room again, the night ends at the same round, and nobody is told twice."""
    told = tmp_path / "told"
    program = f"import json, sys; print(json.load(sys.stdin)['name'], file=open({str(told)!r}, 'a'))"
    command = [sys.executable, "-c", program]
    setting = f"alarms.command={json.dumps(command)}"
    with monkeypatch.context() as patch:
        patch.setattr("flows.training.monitor.bytes_of_a_round", lambda *_: 10**18)
        folder, candidate = school.study("full", ScriptedEngine(school.student, SCRIPT), setting)
    assert sorted(place.name for place in folder.glob("round-*")) == ["round-01"]
    assert candidate.name == (folder / "round-01/checkpoint/checkpoint.txt").read_text()
    alarm = kept_alarms(folder)["disk_short"]
    assert (alarm["severe"], alarm["round"]) == (True, 1)
    engine = ScriptedEngine(school.student, [])
    assert school.study("full", engine, setting) == (folder, candidate)
    assert engine.asked == []
    assert kept_alarms(folder)["disk_short"] == alarm
    assert sorted(told.read_text().split()) == sorted(kept_alarms(folder))


def test_a_disk_that_filled_up_since_takes_no_committed_round_back(
    finished: tuple[Path, ScriptedEngine, Path], school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(school.home("undisturbed").root, school.root / "filled")
    monkeypatch.setattr("flows.training.monitor.bytes_of_a_round", lambda *_: 10**18)
    folder, candidate = school.study("filled", ScriptedEngine(school.student, []))
    assert candidate.name == finished[2].name
    assert "disk_short" not in kept_alarms(folder)
