"""Whole nights on the real engine, trainer, Prefect server and MLflow, with a tiny student or small numbers."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from conf.load import STARTER
from conf.storage.home import Home
from tasks.monitoring.tracking import NIGHT_RUNS
from tasks.registry.mlflow_registry import DAYTIME
from tasks.tables import read_rollouts
from tests.chaos.school import DATE, School, open_school
from tests.flows.planted import MARK, owners, owners_environment, with_keys
from tests.flows.watched import can_watch, watching

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # a CPU without bf16 takes minutes a night

ASKED = [{"role": "user", "content": "2 + 2?"}]
NIGHTLY = STARTER.with_name("nightly.yaml")
FIXED = ["budget_minutes=null"]
FOUND = re.compile(r'"id": ?"([0-9a-f-]{36})"')  # a run whose result another takes


def connections(home: Path) -> Path:
    """The file in which the watcher notes what the nights of a home send to others."""
    return home.with_name(f"{home.name}-connections.txt")


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> School:
    return open_school(tmp_path_factory.mktemp("night") / "tiny", None)


def night(home: Path, *settings: str, config: Path = STARTER, date: str = DATE) -> dict[str, Any]:
    """Run a night to its end. Return its line for machines."""
    owner = {"HOME": str(owners(home)), "XDG_CACHE_HOME": str(Path.home() / ".cache"), "NIGHTSCHOOL_HOME": str(home)}
    command = [*watching(connections(home)), sys.executable, "-m", "flows", "night", "--config", str(config)]
    options = ["--date", date, "--json", *(f"--set={setting}" for setting in settings)]
    environment = owners_environment() | owner
    done = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert MARK not in done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def finished(school: School) -> tuple[Path, dict[str, Any]]:
    home = school.home("whole").root
    return home, night(home, *school.settings, *FIXED, "grpo.rounds=2", "distill.steps=6")


def test_the_line_for_machines(finished: tuple[Path, dict[str, Any]]) -> None:
    home, summary = finished
    assert summary["night"] == DATE
    assert summary["decision"] in ("promoted", "kept")
    assert summary["rounds"] == 2
    for who in ("champion", "candidate"):
        assert summary["accuracy"][who].keys() == {"accuracy", "low", "high", "n", "counted"}
        assert summary["accuracy"][who]["n"] == 16
        assert (home / "checkpoints" / summary["digests"][who] / "model.safetensors").exists()
    assert summary["benchmarks"].keys() == {"gsm8k"}
    assert {"distill", "sample", "update", "quiz", "exam", "evaluate"} <= summary["seconds"].keys()
    assert summary["quizzes"].keys() == {"start", "distill", "rounds"}
    assert summary["looks"][-1]["problems"] == 16
    assert Path(summary["report"]).read_text().startswith("<!DOCTYPE html>")


def test_mlflow_has_the_run_and_the_versions(finished: tuple[Path, dict[str, Any]]) -> None:
    from mlflow import MlflowClient

    home, summary = finished
    database = Home(home).database
    client = MlflowClient(tracking_uri=database, registry_uri=database)
    experiment = client.get_experiment_by_name("nightschool")
    (run,) = client.search_runs([experiment.experiment_id], NIGHT_RUNS)
    assert run.info.status == "FINISHED"
    assert run.data.params["grpo.rounds"] == "2"
    assert {"reward/reward", "sampler/mismatch", "seconds/sample", "speed/tokens_per_second"} <= run.data.metrics.keys()
    versions = client.search_model_versions("name = 'starter'")
    assert {v.tags["digest"] for v in versions} == set(summary["digests"].values())
    serving = client.get_model_version_by_alias("starter", DAYTIME)
    expected = "candidate" if summary["decision"] == "promoted" else "champion"
    assert serving.tags["digest"] == summary["digests"][expected]


@pytest.mark.skipif(not can_watch(), reason="no network can be made here: it takes root, TUN, and ip")
def test_a_night_sends_nothing_to_others_and_lets_nobody_connect(finished: tuple[Path, dict[str, Any]]) -> None:
    """From the student's import to the report, in the environment of a user's shell."""
    assert connections(finished[0]).read_text() == ""


def test_no_key_of_the_environment_is_in_anything_that_a_night_wrote(finished: tuple[Path, dict[str, Any]]) -> None:
    home, _ = finished
    written = {file.name for file in home.rglob("*")}
    assert {"config.yaml", "prefect.db", "mlflow.db", "report.html", "rollouts.parquet", "engine.log"} <= written
    assert list(with_keys(home)) == []
    assert not {name for name in written if name.endswith(".draft")}


def test_prefect_has_every_stage_as_a_finished_run_and_what_it_takes(finished: tuple[Path, dict[str, Any]]) -> None:
    """Also the last one, right after which the server ended with the night. All of it lies under the home."""
    home = finished[0]
    assert list((owners(home) / ".prefect").glob("*")) == []
    of_the_night = (
        "SELECT task_run.name, task_run.state_name FROM task_run JOIN flow_run ON flow_run.id = task_run.flow_run_id "
        "WHERE flow_run.state_type = 'COMPLETED'"
    )
    with closing(sqlite3.connect(home / "prefect" / "prefect.db")) as database:
        runs = dict(database.execute(of_the_night))
        rows = list(database.execute("SELECT id, name, task_inputs FROM task_run"))
    assert {"round 1 · sample", "round 2 · quiz", "evaluate · candidate", "decide", "report"} <= {*runs}
    assert {*runs.values()} == {"Completed"}
    names = {str(UUID(identity)): name for identity, name, _ in rows}
    takes = {name: {names[id_] for id_ in FOUND.findall(inputs) if id_ in names} for _, name, inputs in rows}
    assert takes["freeze journal"] == takes["quiz · start"] == {"enroll"}
    assert takes["distill"] == {"enroll", "freeze journal"}
    assert takes["round 2 · score"] == {"round 2 · select prompts", "round 2 · sample"}
    assert takes["round 2 · checkpoint"] > {"round 2 · sample", "round 2 · credit", "round 2 · update"}
    assert takes["decide"] > {"quiz · rounds", "exam · look 1", "evaluate · champion", "evaluate · candidate"}
    assert (takes["promote"] & {"decide"}, takes["report"] & {"promote"}) == ({"decide"}, {"promote"})


def test_every_stage_is_given_the_exams_questions_in_the_same_order(finished: tuple[Path, dict[str, Any]]) -> None:
    """Their index, which each process builds once for each order, takes long for a large exam."""
    manifests = map(json.loads, (file.read_text() for file in (finished[0] / "nights" / DATE).rglob("manifest.json")))
    given = [one["inputs"].get("exam_questions") for one in manifests]
    assert len({*filter(None, given)}) == 1


@pytest.mark.full
def test_a_night_of_adapters(school: School) -> None:
    """Adapters are sampled and trained; the exam examines a full checkpoint, which alone stays."""
    home = school.home("adapters").root
    adapters = ("lora={rank: 8, dropout: 0.05}", "optimizer.learning_rate=0.01")
    digests = night(home, *school.settings, *FIXED, *adapters)["digests"]
    rounds = [home / "nights" / DATE / f"round-{number:02d}" for number in (1, 2, 3)]
    policies = [(folder / "checkpoint" / "checkpoint.txt").read_text() for folder in rounds]
    assert digests["candidate"] not in policies
    distilled = (home / "nights" / DATE / "distill_check" / "verdict" / "checkpoint.txt").read_text()
    assert {folder.name for folder in (home / "checkpoints").iterdir()} == {*digests.values()}
    assert (home / "checkpoints" / digests["candidate"] / "model.safetensors").exists()
    sampled = {read_rollouts(folder / "sample" / "rollouts.parquet")[0].policy_digest for folder in rounds}
    assert sampled == {distilled, *policies[:2]}


ON_A_CPU = ["student.source=starter", "lora=null"]
TINY_NUMBERS = [
    "distill={steps: 2, batch_size: 8, reference_solutions: 10}",
    "reward_model={min_picks: 8}",
    "lessons.quiz_problems=8",
    "grpo={rounds: 1, prompts_per_round: 10, group_size: 4, refills: 0, max_completion_tokens: 24}",
    "exam.target.problems=8",
    *("exam.guards.0.problems=8", "exam.guards.0.margin=0.2", "exam.guards.1.problems=8", "exam.guards.1.margin=0.2"),
    "exam.max_completion_tokens=24",
]


@pytest.mark.full
@pytest.mark.skipif(not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no files to read")
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed: programs cannot be judged")
def test_the_scheduled_night(tmp_path: Path) -> None:
    """Every part of conf/nightly.yaml on the real files: ten prompts of four answers by weights 2, 2 and 1."""
    home = tmp_path / "school"
    (home / "journal").mkdir(parents=True)
    lines = [{"kind": "correction", "messages": ASKED, "response": "5", "correction": "4"}]
    lines += [{"kind": "trace", "messages": ASKED, "response": "2 + 2 = 4\n#### 4", "teacher": "me"}]
    lines += [
        {"kind": "preference", "messages": [{"role": "user", "content": f"{n}?"}], "responses": [*"abcde"]}
        | {"chosen": n % 5, "policy": "imported"}
        for n in range(12)
    ]
    stamped = [json.dumps({"version": 1, "at": "2026-01-02T20:00:00", **line}) for line in lines]
    (home / "journal" / "2026-01-02.jsonl").write_text("".join(f"{line}\n" for line in stamped))
    summary = night(home, *ON_A_CPU, *TINY_NUMBERS, config=NIGHTLY, date="2026-01-03")
    folder = home / "nights" / "2026-01-03"
    answers = {name: sum(counts.values()) for name, counts in summary["verdicts"].items()}
    assert answers == {"gsm8k": 16, "math": 16, "mbpp": 8}
    assert all(counts["grader_failed"] == 0 for counts in summary["verdicts"].values())
    assert "gsm8k" in summary["benchmarks"]
    sources = json.loads((folder / "distill" / "sources.json").read_text())
    assert {row["teacher"] for row in sources} == {"dataset", "me"}
    assert json.loads((folder / "lessons" / "corrections" / "counts.json").read_text())["used"] == 1
    assert json.loads((folder / "fit_reward_model" / "outcome.json").read_text())["picks"] == 13  # the correction, too
    for lesson in ("distill", "lessons"):
        assert json.loads((folder / f"{lesson}_check" / "verdict" / "outcome.json").read_text())["problems"] == 8
    assert '<tr><th scope="row">mbpp<small>training</small></th>' in Path(summary["report"]).read_text()
