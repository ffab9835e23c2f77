"""Whole rounds on the real stages, trainer, Prefect and MLflow; only the engine's answers are from a script."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.layout import passes
from flows.run.history import read_round_metrics
from models.hf.checkpoint import DamagedCheckpointError
from models.rollout import Rollout
from rewards.arithmetic import Arithmetic
from tasks.monitoring.tracking import Tracking
from tasks.tables import PROMPTS, SOLVE_RATES, read_rollouts, read_table
from tests.flows.rounds import DATE, SCRIPT, School, ScriptedEngine, digest, rollout


@dataclass(frozen=True)
class Night:
    """A night of three rounds."""

    folder: Path
    engine: ScriptedEngine
    candidate: Path

    @property
    def metrics(self) -> list[dict[str, float]]:
        return read_round_metrics(self.folder)

    def passes(self, number: int) -> list[Path]:
        """The folders of a round and of its refills."""
        return passes(self.folder / f"round-0{number}")

    def checkpoint(self, number: int) -> str:
        return digest(self.folder, f"round-0{number}/checkpoint")


@pytest.fixture(scope="module")
def finished(school: School) -> Night:
    """An undisturbed night."""
    engine = ScriptedEngine(school.student, SCRIPT)
    folder, candidate = school.study("undisturbed", engine)
    return Night(folder, engine, candidate)


def test_groups_without_signal_are_replaced_up_to_the_limit(finished: Night) -> None:
    assert [len(numbers) for numbers in finished.engine.asked] == [4, 4, 4, 4, 4, 4, 1]
    folders = [[one.name for one in finished.passes(number)] for number in (1, 2, 3)]
    refills = ["refill-1", "refill-2"]
    assert folders == [["round-01"], ["round-02", *refills], ["round-03", *refills]]
    names = ("refills", "replaced_groups", "groups", "useful_groups", "signal_share", "skipped")
    assert [[metrics[name] for name in names] for metrics in finished.metrics] == [
        [0, 0, 4, 4, 1.0, 0],
        [2, 8, 12, 0, 0.0, 1],
        [2, 5, 9, 3, pytest.approx(1 / 3), 0],
    ]
    for number, metrics in enumerate(finished.metrics, 1):  # the flow and the trainer count the same groups
        signal = [json.loads((one / "credit" / "signal.json").read_text()) for one in finished.passes(number)]
        assert sum(one["groups"] for one in signal) == metrics["groups"]
        assert sum(one["with_signal"] for one in signal) == metrics["useful_groups"]


def test_the_two_newest_states_and_checkpoints_stay(finished: Night) -> None:
    """The last round's, its predecessor's, from which its update may be repeated, and the base."""
    checkpoints = [finished.checkpoint(number) for number in (1, 2, 3)]
    assert checkpoints[-1] == finished.candidate.name
    assert sorted(state.name for state in (finished.folder / "state").iterdir()) == ["round-02", "round-03"]
    kept = {checkpoint.name for checkpoint in finished.candidate.parent.iterdir()}
    assert checkpoints[0] not in kept
    assert kept >= set(checkpoints[1:])
    assert len(kept) == 3


def test_groups_are_numbered_through_the_refills_and_no_seed_is_used_twice(finished: Night) -> None:
    assert len(set(finished.engine.seeds)) == 7
    sampled = [r for one in finished.passes(3) for r in read_rollouts(one / "sample" / "rollouts.parquet")]
    assert [(r.group, r.sample) for r in sampled] == [(group, sample) for group in range(9) for sample in range(2)]
    asked = [number for numbers in finished.engine.asked[4:] for number in numbers]
    assert [r.problem_id for r in sampled[::2]] == [f"gsm8k/train/{number}" for number in asked]
    prompts = [row for one in finished.passes(3) for row in rows(one / "select_prompts/prompts.parquet", PROMPTS)]
    assert [row["group"] for row in prompts] == list(range(9))


def test_solve_rates_fade_between_rounds_and_not_within_one(finished: Night) -> None:
    last = [rows(finished.passes(number)[-1] / "score/solve_rates.parquet", SOLVE_RATES) for number in (1, 2, 3)]
    tried, solved = ([sum(row[name] for row in table) for table in last] for name in ("tried", "solved"))
    assert tried == pytest.approx([8, 0.7 * 8 + 24, 0.7 * (0.7 * 8 + 24) + 18])
    assert solved == pytest.approx([4, 0.7 * 4 + 6, 0.7 * (0.7 * 4 + 6) + 7])


def rows(file: Path, schema: Any) -> list[dict[str, Any]]:
    return read_table(file, schema).to_dict("records")


def test_a_round_without_any_signal_takes_no_step_and_is_an_alarm(finished: Night) -> None:
    assert ["loss" in metrics for metrics in finished.metrics] == [True, False, True]
    assert finished.checkpoint(3) == finished.candidate.name != finished.checkpoint(2)
    alarm = alarms(finished.folder)["skipped_updates"]
    assert (alarm["severe"], alarm["round"]) == (False, 2)


def test_the_metrics_have_the_expected_signal_and_the_seconds(finished: Night, school: School) -> None:
    first, second, third = finished.metrics
    assert "expected_signal_share" not in first  # without solve rates
    for metrics in (second, third):
        assert 0 < metrics["expected_signal_share"] < 0.5001  # at most 2p(1 − p): two completions, one of them right
    assert [metrics["seconds_generate"] for metrics in finished.metrics] == [0.5, 1.5, 1.5]
    assert [metrics["seconds_sync"] for metrics in finished.metrics] == [0.25, 0.75, 0.75]
    for metrics in finished.metrics:
        stages = ("select_prompts", "sample", "score", "credit", "update", "checkpoint")
        assert all(metrics[f"seconds_{stage}"] > 0 for stage in stages)
        assert metrics["seconds_round"] > metrics["seconds_update"]
    client = Tracking(school.home("undisturbed"), load_night(STARTER)).client
    logged = client.get_metric_history((finished.folder / "mlflow_run.txt").read_text(), "reward/replaced_groups")
    assert [(metric.step, metric.value) for metric in logged] == [(1, 0), (2, 8), (3, 5)]


def test_a_night_killed_in_a_refill_comes_to_the_same_end(finished: Night, school: School) -> None:
    """Its last round has the first pass, and the prompts of the first refill."""
    shutil.copytree(school.home("undisturbed").root, school.root / "killed")
    home = school.home("killed")
    for lost in ("refill-1/sample", "refill-1/score", "refill-1/credit", "refill-2", "checkpoint"):
        shutil.rmtree(home.night(DATE) / "round-03" / lost)
    shutil.rmtree(home.checkpoints / finished.candidate.name)
    engine = ScriptedEngine(school.student, SCRIPT[5:])
    folder, candidate = school.study("killed", engine)
    assert (engine.asked, engine.seeds) == (finished.engine.asked[5:], finished.engine.seeds[5:])
    assert candidate.name == finished.candidate.name
    assert ["seconds_round" in metrics for metrics in read_round_metrics(folder)] == [True, True, False]  # interrupted
    for path in ("round-01/checkpoint/metrics.json", "round-02/checkpoint/metrics.json"):
        assert (folder / path).read_bytes() == (finished.folder / path).read_bytes()


def test_a_changed_checkpoint_is_not_trained_further(finished: Night, school: School) -> None:
    """That of the last committed round."""
    shutil.copytree(school.home("undisturbed").root, school.root / "changed")
    home = school.home("changed")
    shutil.rmtree(home.night(DATE) / "round-03")
    (home.checkpoints / finished.checkpoint(2) / "config.json").write_text("{}")
    with pytest.raises(DamagedCheckpointError, match=finished.checkpoint(2)):
        school.study("changed", ScriptedEngine(school.student, SCRIPT[4:]))


def test_a_small_benchmark_is_used_up(school: School) -> None:
    """Resumed, the night has no use for the checkpoints that are gone."""
    engine = ScriptedEngine(school.student, 3 * [(0, 0, 0, 1), (0, 2)])
    folder, candidate = school.study("small", engine, "grpo.refills=5", problems=6)
    assert sorted(number for numbers in engine.asked for number in numbers) == sorted(3 * [*range(6)])
    for metrics in read_round_metrics(folder):
        assert [metrics[name] for name in ("refills", "replaced_groups", "groups", "useful_groups")] == [1, 2, 6, 1]
    assert school.study("small", ScriptedEngine(school.student, []), "grpo.refills=5", problems=6)[1] == candidate


def alarms(folder: Path) -> dict[str, dict[str, Any]]:
    """The night's alarms by name."""
    return {alarm["name"]: alarm for alarm in json.loads((folder / "alarms.json").read_text())}


def test_a_severe_alarm_ends_the_learning_for_good(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed when there is room again, the night ends at the same round, and raises no alarm twice."""
    with monkeypatch.context() as patch:
        patch.setattr("flows.training.monitor.bytes_of_a_round", lambda *_: 10**18)
        folder, candidate = school.study("full", ScriptedEngine(school.student, SCRIPT))
    assert sorted(path.name for path in folder.glob("round-*")) == ["round-01"]
    assert candidate.name == digest(folder, "round-01/checkpoint")
    alarm = alarms(folder)["disk_short"]
    assert (alarm["severe"], alarm["round"]) == (True, 1)
    engine = ScriptedEngine(school.student, [])
    assert school.study("full", engine) == (folder, candidate)
    assert engine.asked == []
    assert alarms(folder)["disk_short"] == alarm


def test_committed_rounds_need_no_room(finished: Night, school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(school.home("undisturbed").root, school.root / "filled")
    monkeypatch.setattr("flows.training.monitor.bytes_of_a_round", lambda *_: 10**18)
    folder, candidate = school.study("filled", ScriptedEngine(school.student, []))
    assert candidate.name == finished.candidate.name
    assert "disk_short" not in alarms(folder)


# --- self-play

SELF_PLAY = [
    "stages=[{self_play: 3}]",
    "benchmarks=[{name: arithmetic}]",
    "grpo.group_size=4",
    "grpo.prompts_per_round=4",
    "grpo.min_useful_groups=1",
    "self_play={proposals: 8, train: both}",
]


def sums() -> Iterator[str]:
    for first in range(20, 100):
        for second in range(2, 10):
            if Arithmetic().proposed(f"{first} + {second} - 1"):
                yield f"{first} + {second} - 1"


class Questioner(ScriptedEngine):
    """Writes a sum in every second proposal, as far as there are some; answers half of the questions rightly."""

    def __init__(self, student: Path, most: int) -> None:
        super().__init__(student, [])
        self.new, self.most = sums(), most

    def sample(
        self, checkpoint: Path, config: Any, prompts: list[list[int]], size: int, *, seed: int, **options: Any
    ) -> list[list[Rollout]]:
        self.seeds.append(seed)
        return [
            [rollout(n, sample, prompt, self.text(prompt, n + sample), checkpoint.name) for sample in range(size)]
            for n, prompt in enumerate(prompts)
        ]

    def text(self, prompt: list[int], number: int) -> str:
        asked = self.tokenizer.decode(prompt)
        if "Write one new sum" in asked:
            self.most -= number % 2 == 0
            return next(self.new) if number % 2 == 0 and self.most >= 0 else "a sum"
        sum_asked = re.search(r"What is (\d+) \+ (\d+) - 1\?", asked)
        right = int(sum_asked[1]) + int(sum_asked[2]) - 1 if sum_asked and number % 2 else -1
        return f"#### {right}"


def test_the_students_own_problems_come_first_and_others_fill_the_round(school: School) -> None:
    """All of the first round are the student's own, one of the second, and none of the third."""
    engine = Questioner(school.student, 5)
    folder, candidate = school.study("self-play", engine, *SELF_PLAY)
    admitted = []
    for number, count in ((1, 4), (2, 1), (3, 0)):
        path = folder / f"round-{number:02d}"
        own: Any = read_table(path / "select_prompts" / "prompts.parquet", PROMPTS)
        assert [*own.source] == ["self_play"] * count
        others = path / "refill-1" / "select_prompts" / "prompts.parquet"
        drawn = len(read_table(others, PROMPTS)) if others.exists() else 0
        assert count + drawn == 4
        metrics = json.loads((path / "checkpoint" / "metrics.json").read_text())
        assert metrics["self_play/unreadable"] >= 0.5
        questions = path / "credit_questions"
        assert questions.exists() == (count > 0)
        assert metrics["groups"] == 4  # of answers; proposals are no groups
        admitted += own.problem_id.tolist()
    assert len(set(admitted)) == len(admitted)
    calls = len(engine.seeds)
    again = school.study("self-play", engine, *SELF_PLAY)
    assert (again[1].name, len(engine.seeds)) == (candidate.name, calls)
