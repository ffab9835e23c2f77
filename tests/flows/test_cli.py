"""The `nightschool` command: exit codes, one clear line for each wrong input, one line of JSON for machines."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import typer
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import FlowRunSort

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError, NightError
from conf.storage.locks import NightRunningError, hold
from flows import cli
from flows.orchestration.server import prefect_api
from flows.run.context import freeze_config
from flows.web.address import free_port
from tests.conf.storage.test_locks import holder
from tests.tasks.tiny_student import write_student

DATE = "2026-01-20"


class Outcome(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that is not there yet, on a disk with room, and no settings of this machine's owner."""
    for name in ("PREFECT_API_URL", "NIGHTSCHOOL_DATA", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "away" / "school"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000_000))
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path / "away" / "school")


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["nightschool", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        found = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), found.out, found.err)

    return call


@pytest.fixture
def no_night(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of what stops a night must not begin one."""

    def never(*_: Any) -> None:
        raise AssertionError("the night began")

    monkeypatch.setattr(cli, "_run_night", never)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def refused(outcome: Outcome) -> str:
    """The one line, of a command that ended with code 2 and printed nothing else."""
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("nightschool: ")
    return line.removeprefix("nightschool: ")


def write_gsm8k(folder: Path, train: str | None, test: str | None) -> Path:
    folder.mkdir()
    for split, content in (("train", train), ("test", test)):
        if content is not None:
            (folder / f"{split}.jsonl").write_text(content)
    return folder


VIT = '{"model_type": "vit"}'  # which sees, and says nothing
GOOD_ROW = '{"question": "How many?", "answer": "#### 4"}\n'


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("grpo.ronds=4", "--set grpo.ronds=4: unknown key; did you mean 'rounds'?"),
        ("grpo.rounds=four", '--set grpo.rounds=four: "four" is not allowed; a whole number'),
        ("grpo.rounds=-1", "--set grpo.rounds=-1: -1 is not allowed; at least 0"),
        ("grpo.rounds", "--set grpo.rounds: must look like KEY=VALUE, for example --set grpo.rounds=4"),
        (
            "student.source={tmp}/mine",
            "student.source: {tmp}/mine: no tokenizer.json (a tokenizer) in this folder; "
            "name a folder written by save_pretrained of both model and tokenizer, or a hub id",
        ),
        (
            "student.source={tmp}/nobody",
            "student.source: {tmp}/nobody: there is no such folder; name one, a hub id (owner/name), or 'starter'",
        ),
        (
            "benchmarks=[{{name: gsm8k, source: {tmp}/lacking}}]",
            "{tmp}/lacking/train.jsonl: no such file; put it there, or set `source` or NIGHTSCHOOL_DATA to its folder",
        ),
        (
            "benchmarks=[{{name: gsm8k, source: {tmp}/truncated}}]",
            "{tmp}/truncated/train.jsonl, line 2: not valid JSON (Unterminated string starting at at column 14); "
            "cut off? Copy the file again, or correct or remove the line",
        ),
        (
            "exam.target={{benchmark: gsm8k, source: {tmp}/no-exam}}",
            "{tmp}/no-exam/test.jsonl: no such file; put it there, or set `source` or NIGHTSCHOOL_DATA to its folder",
        ),
        (
            "prefect.port={port}",
            "prefect.port: {port} is taken by another program; "
            "take another, or leave it out for any that is free: --set prefect.port=null",
        ),
    ],
)
def test_a_wrong_input_is_one_line_and_nothing_is_written(
    run: Run, home: Home, tmp_path: Path, taken_port: int, setting: str, said: str
) -> None:
    write_student(tmp_path / "mine", tokenizer=False)
    write_gsm8k(tmp_path / "lacking", train=None, test=GOOD_ROW)
    write_gsm8k(tmp_path / "truncated", train=GOOD_ROW + '{"question": "How ma', test=GOOD_ROW)
    write_gsm8k(tmp_path / "no-exam", train=GOOD_ROW, test=None)
    before = sorted(tmp_path.rglob("*"))
    places = {"tmp": tmp_path, "port": taken_port}
    line = refused(run("night", "--date", DATE, "--set", setting.format(**places)))
    assert line == said.format(**places)
    assert sorted(tmp_path.rglob("*")) == before
    assert not home.root.parent.exists()


@pytest.mark.usefixtures("no_night")
def test_a_wrong_line_in_a_file_names_the_file(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "my.yaml"
    config.write_text(STARTER.read_text().replace("seed: 1", "sede: 1"))
    assert refused(run("night", "--config", str(config))) == f"{config}: sede: unknown key; did you mean 'seed'?"
    assert refused(run("night", "--config", "none.yaml")).startswith("none.yaml: no such file")


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize("date", ["20.11.2026", "2026-02-30", "tomorrow", "../..", ""])
def test_a_date_that_is_none(run: Run, home: Home, date: str) -> None:
    assert refused(run("night", f"--date={date}")) == f"--date: {date} is no date; write it as 2026-11-20"
    assert not home.root.exists()


PAST_DEADLINE = ("--set=deadline=06:30", "--set=deadline_time_zone=Europe/Berlin")


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--date=2999-01-01",), "--date: 2999-01-01 is in the future, today is "),
        (
            (f"--date={DATE}", *PAST_DEADLINE),
            f"deadline: 06:30 of the night {DATE} is past, it was at 2026-01-21 06:30 CET; "
            "name another, or go on without: --set deadline=null",
        ),
        (("--set=deadline_time_zone=Mars",), '--set deadline_time_zone=Mars: "Mars" is no time zone; '),
    ],
)
def test_hours_that_cannot_be(run: Run, home: Home, arguments: tuple[str, ...], said: str) -> None:
    assert refused(run("night", *arguments)).startswith(said)
    assert not home.root.parent.exists()


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize("place", ["/proc", "/proc/school", "{tmp}/file", "{tmp}/file/school"])
def test_a_home_that_cannot_be_written_to(
    run: Run, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    place = place.format(tmp=tmp_path)
    monkeypatch.setenv("NIGHTSCHOOL_HOME", place)
    line = refused(run("night", "--date", DATE))
    assert line.startswith(f"{place}: the home cannot be written to (")
    assert line.endswith("name a folder of your own: NIGHTSCHOOL_HOME=/path/to/school")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "mine")]


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize("there", [True, False])
def test_too_little_disk(run: Run, home: Home, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if there:
        home.root.mkdir(parents=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2_000_000_000))
    line = refused(run("night", "--date", DATE))
    assert line.startswith(f"{home.root}: 2.0 GB free, but the night needs about ")
    assert list(home.root.parent.rglob("*")) == ([home.root] if there else [])


def test_the_one_line_is_all_that_a_real_process_prints(home: Home, tmp_path: Path, taken_port: int) -> None:
    """Libraries that are imported on the way have their own ideas of what belongs on a terminal."""
    command = [sys.executable, "-m", "flows", "night", "--json", "--date", DATE, "--set"]
    root = Path(__file__).parents[2]
    for setting in ("grpo.ronds=4", f"prefect.port={taken_port}"):
        done = subprocess.run(
            [*command, setting],
            env=os.environ | {"PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        refused(Outcome(done.returncode, done.stdout, done.stderr))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_night")
def test_another_night_holds_the_home(run: Run, home: Home) -> None:
    with holder(home.root) as other:
        outcome = run("night", "--date", DATE)
    assert outcome == Outcome(
        3,
        "",
        f"nightschool: {home.root}: the night 2026-11-20 is running (process {other.pid}); "
        "wait for it, or end it with Ctrl-C there\n",
    )
    assert [file.name for file in home.root.iterdir()] == ["night.lock"]


@pytest.mark.usefixtures("no_night")
def test_another_night_holds_the_home_that_was_begun_with_another_configuration(run: Run, home: Home) -> None:
    freeze_config(home.night(DATE), load_night(STARTER), fresh=False)
    with holder(home.root):
        outcome = run("night", "--date", DATE, "--set", "seed=9", *PAST_DEADLINE)
    assert outcome.code == 3
    assert "the night 2026-11-20 is running" in outcome.err


def test_a_night_that_has_begun_goes_on_without_room_and_after_its_deadline(
    run: Run, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room it has taken itself, and for the exam there is always time."""
    went_on: list[str] = []
    late = [one.removeprefix("--set=") for one in PAST_DEADLINE]
    freeze_config(home.night(DATE), load_night(STARTER, late), fresh=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    monkeypatch.setattr(cli, "_run_night", lambda home, settings, date, *_: went_on.append(date) or finish(home, *late))
    assert run("night", "--date", DATE, *PAST_DEADLINE).code == 0
    assert went_on == [DATE]


@pytest.mark.parametrize(
    ("came_to", "begun", "code", "said"),
    [
        (None, [DATE, "2026-01-21"], 0, "which was interrupted; it sits its exam, then the night 2026-01-21 begins."),
        (NightError("no registry"), [DATE, "2026-01-21"], 0, "(no registry); go on with it: nightschool night --con"),
        (typer.Exit(130), [DATE], 130, ""),
        (NightRunningError("the night of another"), [DATE], 3, "the night of another"),
    ],
)
def test_the_night_before_is_finished_where_it_has_a_deadline_and_costs_tonight_nothing(
    run: Run,
    home: Home,
    came_to: Exception | None,
    begun: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A timer starts the same command every evening."""
    went_on: list[str] = []

    def night(home: Home, _: Any, date: str, *__: Any) -> dict[str, Any]:
        went_on.append(date)
        if came_to and date == DATE:
            raise came_to
        return {"night": date}

    late = [one.removeprefix("--set=") for one in PAST_DEADLINE]
    freeze_config(home.night(DATE), load_night(STARTER, late), fresh=False)
    monkeypatch.setattr(cli, "_run_night", night)
    monkeypatch.setattr(cli, "clocks_in", lambda _: datetime.fromisoformat("2026-01-21T22:00:00+01:00"))
    outcome = run("night", "--json", *PAST_DEADLINE)
    assert (went_on, outcome.code) == (begun, code)
    assert said in outcome.err
    assert outcome.out == ('{"night": "2026-01-21"}\n' if code == 0 else "")


def test_the_night_before_goes_on_where_it_has_none(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    freeze_config(home.night(DATE), load_night(STARTER), fresh=False)
    monkeypatch.setattr(cli, "_run_night", lambda home, settings, date, *_: {"night": date})
    monkeypatch.setattr(cli, "clocks_in", lambda _: datetime.fromisoformat("2026-01-21T22:00:00+01:00"))
    outcome = run("night", "--json")
    assert outcome.out == json.dumps({"night": DATE}) + "\n"
    assert "which was interrupted; --date 2026-01-21 begins another." in outcome.err


def finish(home: Home, *overrides: str) -> dict[str, Any]:
    """A night that is finished."""
    freeze_config(home.night(DATE), load_night(STARTER, overrides), fresh=False)
    interval = {"accuracy": 0.6125, "low": 0.56, "high": 0.66, "n": 400}
    three = dict.fromkeys(("champion", "distilled", "candidate"), interval)
    summary = {
        "night": DATE,
        "decision": "promoted",
        "reasons": ["arithmetic-1-2: +0.557 [0.51, 0.61], ü"],
        "target": "arithmetic-1-2",
        "accuracy": three,
        "benchmarks": {"arithmetic-1-2": three},
        "alarms": ["the grader failed on 3 completions"],
        "report": str(home.night(DATE) / "report.html"),
    }
    (home.night(DATE) / "summary.json").write_text(json.dumps(summary))
    (home.night(DATE) / "report.html").write_text("<html>")
    return summary


@pytest.mark.usefixtures("no_night")
def test_a_finished_night_is_told_and_not_run_again(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = finish(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))  # needs no room
    outcome = run("night", "--date", DATE, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out) == summary
    assert outcome.out.count("\n") == 1
    assert "--date" in outcome.err
    assert "--fresh" in outcome.err
    told = run("night", "--date", DATE, *PAST_DEADLINE)  # and no time
    assert told.code == 0
    for part in ("0.613", "The candidate won", "[0.51, 0.61], ü", "the grader failed", "report.html", "rollback"):
        assert part in told.out


@pytest.mark.usefixtures("no_night")
def test_a_promotion_that_its_owner_took_back_meanwhile_is_not_told_as_one(run: Run, home: Home) -> None:
    """There `nightschool rollback` would promote the candidate again."""
    moved = finish(home) | {"digests": {"champion": "c0ffee", "candidate": "f00d"}, "serving": "c0ffee"}
    (home.night(DATE) / "summary.json").write_text(json.dumps(moved))
    told = run("night", "--date", DATE).out
    assert "The candidate won, but c0ffee serves: the alias was moved meanwhile." in told
    assert "disappoint" not in told


@pytest.mark.usefixtures("no_night")
def test_a_finished_night_with_another_configuration(run: Run, home: Home) -> None:
    finish(home)
    assert "seed: 1 → 9" in refused(run("night", "--date", DATE, "--set", "seed=9"))


@pytest.mark.parametrize("done", [True, False])
def test_a_server_that_is_gone_for_good_fails_no_finished_night(
    run: Run, home: Home, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nightly(*_: Any) -> None:
        if done:
            finish(home)
        raise httpx.ConnectError("All connection attempts failed")

    monkeypatch.setattr("flows.orchestration.server.prefect_api", lambda *_: nullcontext())
    monkeypatch.setattr("flows.nightly.nightly", nightly)
    outcome = run("night", "--date", DATE, "--json")
    assert (outcome.code, outcome.out.count("\n")) == ((0, 1) if done else (1, 0))
    assert ("is finished, but Prefect's server could not be told: All connection" in outcome.err) == done


@pytest.mark.parametrize(
    ("error", "code"),
    [(NightError("the disk is full"), 1), (InputError("no such file"), 2), (KeyboardInterrupt(), 130)],
)
def test_what_ended_a_night_is_told_though_its_server_could_not_be(
    run: Run, error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nightly(*_: Any) -> None:
        try:
            raise error
        except BaseException:
            raise httpx.ConnectError("All connection attempts failed")  # as Prefect's engine does  # noqa: B904

    monkeypatch.setattr("flows.orchestration.server.prefect_api", lambda *_: nullcontext())
    monkeypatch.setattr("flows.nightly.nightly", nightly)
    outcome = run("night", "--date", DATE)
    assert outcome.code == code
    assert (str(error) or "Interrupted") in outcome.err
    assert "connection attempts" not in outcome.err


def test_a_night_that_fails_says_so_and_keeps_what_it_has(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the engine is on fire")

    monkeypatch.setattr(cli, "_run_night", fail)
    outcome = run("night", "--date", DATE, "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "the engine is on fire" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("nightschool: the night failed; what is committed is kept")


def test_what_ends_a_night_by_design_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise NightError("ab12 is not what the engine samples from: its file has nothing for model.norm.weight")

    monkeypatch.setattr(cli, "_run_night", fail)
    outcome = run("night", "--date", DATE, "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines() == [
        "nightschool: the night failed; what is committed is kept: ab12 is not what the engine samples from: its file "
        "has nothing for model.norm.weight"
    ]


def test_ctrl_c_says_how_to_go_on(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.orchestration.server.start_server", interrupt)
    monkeypatch.setattr("prefect.settings.get_current_settings", lambda: SimpleNamespace(api=SimpleNamespace(url=None)))
    guards = 'exam.guards=[{benchmark: arithmetic, levels: ["3"], problems: 100}]'
    outcome = run("night", "--date", DATE, "--set", guards)
    assert outcome.code == 130
    command = f"nightschool night --config {STARTER} --date {DATE} '--set={guards}'"
    assert outcome.err.splitlines()[-1] == f"Interrupted. What is committed is kept; go on with: {command}"
    with hold(home.root, "the next"):
        pass


def test_status_and_report(run: Run, home: Home) -> None:
    assert run("status").out == "no nights yet: `nightschool night` runs the first\n"
    assert run("status", "--json").out == '{"running": null, "nights": []}\n'
    assert "no report yet" in refused(run("report"))
    assert not home.root.exists()
    finish(home)
    assert run("status").out.startswith(f"{DATE}  promoted     arithmetic-1-2: 0.613 → 0.613")
    found = json.loads(run("status", "--json").out)
    (night,) = found["nights"]
    assert found["running"] is None
    assert (night["night"], night["state"]) == (DATE, "promoted")
    assert run("report").out == f"{home.night(DATE)}/report.html\n"
    assert "an earlier version wrote it" in refused(run("report", "--markdown"))
    (home.night(DATE) / "report.md").write_text("# The night\n\n| a |\n")
    assert run("report", "--markdown", "--date", DATE).out == "# The night\n\n| a |\n"


def test_checkpoints_of_a_home_without_any(run: Run, home: Home) -> None:
    assert run("checkpoints", "--json") == Outcome(0, '{"daytime": null, "previous": null, "versions": []}\n', "")
    assert run("checkpoints").out == "no checkpoints yet: `nightschool night` makes the first\n"
    assert refused(run("rollback")).startswith("rollback: there is no previous version to go back to")
    assert refused(run("promote", "3")) == "promote: there is no version 3; there are none yet"
    assert not home.root.exists()


@pytest.mark.parametrize("command", [("checkpoints",), ("promote", "1"), ("rollback",), ("prune",)])
def test_a_registry_that_is_not_there_is_one_line(run: Run, command: tuple[str, ...]) -> None:
    nowhere = "--set=tracking.tracking_uri=http://127.0.0.1:9"
    assert refused(run(*command, nowhere)).startswith("MLflow's server does not answer at http://127.0.0.1:9/version")


def test_a_night_whose_registry_is_not_there_does_not_begin(run: Run, home: Home, no_night: None) -> None:
    said = refused(run("night", "--set=tracking.tracking_uri=http://127.0.0.1:9"))
    assert said.startswith("MLflow's server does not answer at http://127.0.0.1:9/version")
    assert not home.root.exists()


@pytest.mark.usefixtures("no_night")
@pytest.mark.parametrize(
    "command",
    [("night",), ("checkpoints",), ("promote", "1"), ("rollback",), ("prune", "--dry-run"), ("serve", "--port={port}")],
)
def test_a_database_that_is_damaged_stops_every_command(run: Run, home: Home, command: tuple[str, ...]) -> None:
    home.root.mkdir(mode=0o700, parents=True)
    home.database_file.write_text("no database")
    said = refused(run(*(argument.format(port=free_port()) for argument in command)))
    assert said.startswith(f"{home.database_file}: this database is damaged (file is not a database); bring it back")
    assert list(home.root.iterdir()) == [home.database_file]


def test_a_dry_run_is_handed_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any) -> None:
        raise NightError(f"dry: {[one for one in arguments if isinstance(one, bool)]}")

    monkeypatch.setattr(cli, "_run_night", stop)
    assert "dry: [False, True]" in run("night", "--dry-run").err  # not --fresh
    assert "dry: [False, False]" in run("night").err


def runs_on_prefect(home: Home) -> list[str]:
    """The flow runs that a Prefect server of the home shows, the oldest first."""
    with prefect_api(home.root, None), get_client(sync_client=True) as client:
        assert [found.key for found in client.read_latest_artifacts()] == ["daytime"]
        return [run.name for run in client.read_flow_runs(sort=FlowRunSort.EXPECTED_START_TIME_ASC)]


def test_checkpoints_promotion_and_rollback(
    home_with_mlflow: Callable[[str], Home], home: Home, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tasks.registry.test_mlflow_registry import School

    made = home_with_mlflow("school")
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(made.root))
    school = School(made)
    school.registry.model = "starter"
    for number, role in enumerate(("champion", "distilled", "candidate")):
        school.register(number, role, accuracy=0.1 * number)
    assert refused(run("promote", "7")) == "promote: there is no version 7; there are 1, 2, 3"
    assert "version 1 serves from now on" in run("promote", "1").out
    assert refused(run("rollback")).startswith("rollback: there is no previous version to go back to")
    assert run("promote", "3").code == 0
    found = json.loads(run("checkpoints", "--json").out)
    assert (found["daytime"], found["previous"]) == ("3", "1")
    assert [version["accuracy"] for version in found["versions"]] == [0.0, 0.1, 0.2]
    assert [version["digest"] for version in found["versions"]] == [folder.name for folder in school.checkpoints]
    back = run("rollback")
    assert (back.code, back.err) == (0, "")
    assert back.out.startswith(f"version 1 ({school.checkpoints[0].name}) serves again")
    assert school.aliases() == ("1", "3")
    assert runs_on_prefect(made) == ["promote to version 1", "promote to version 3", "rollback to version 1"]
    rows = run("checkpoints").out.splitlines()
    assert len(rows) == 3
    assert rows[0].endswith("daytime")
    assert rows[2].endswith("previous")
    (school.checkpoints[2] / "model.safetensors").write_text("damaged")
    for attempt in (run("rollback"), run("promote", "3")):
        assert refused(attempt).startswith(f"{school.checkpoints[2]}: it was changed or damaged, or is gone")
    assert school.aliases() == ("1", "3")


def test_a_journal_is_checked(run: Run, home: Home, tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    file.write_text('{"version": 1, "kind": "words", "text": "Grüße", "at": "2026-11-20"}\nnot JSON\n')
    outcome = run("journal", "check", str(file), "--json")
    assert outcome.code == 0
    assert outcome.out.count("\n") == 1
    found = json.loads(outcome.out)
    assert found.keys() == {"file", "good", "bad"}
    assert (found["file"], found["good"]) == (str(file), 1)
    ((line, reason),) = [(entry["line"], entry["reason"]) for entry in found["bad"]]
    assert line == 2
    assert "Invalid JSON" in reason
    told = run("journal", "check", str(file)).out.splitlines()
    assert told[0] == f"{file}: 1 good lines, 1 bad"
    assert told[1].startswith("  line 2: ")
    assert refused(run("journal", "check", "none.jsonl")).startswith("none.jsonl: there is no such file")
    assert not home.root.exists()


def test_the_doctor_for_machines(run: Run, home: Home) -> None:
    outcome = run("doctor", "--json")
    findings = json.loads(outcome.out)
    assert outcome.out.count("\n") == 1
    assert {"cores", "memory", "gpu", "disk", "home"} <= {finding["name"] for finding in findings}
    assert outcome.code == int(any(finding["level"] == "error" for finding in findings))
    assert not home.root.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{tmp}/nobody"], "CHECKPOINT: {tmp}/nobody: there is no such folder; name one, or a hub id (owner/name)"),
        (["{tmp}/empty"], "CHECKPOINT: {tmp}/empty: no config.json"),
        (["{tmp}/mine", "--against", "{tmp}/empty"], "--against: {tmp}/empty: no config.json"),
        (
            ["{tmp}/torn"],
            "CHECKPOINT: {tmp}/torn: config.json cannot be loaded (OSError: It looks like the config file",
        ),
        (
            ["{tmp}/mine", "--against", "{tmp}/unheard"],
            "--against: {tmp}/unheard: config.json cannot be loaded (ValueError: The checkpoint you are trying",
        ),
        (
            ["{tmp}/pictures"],
            "CHECKPOINT: {tmp}/pictures: config.json cannot be loaded (ValueError: vit is no causal language model "
            "that transformers knows); name a folder written by save_pretrained",
        ),
        (
            ["{tmp}/speechless"],
            "CHECKPOINT: {tmp}/speechless: tokenizer.json cannot be loaded (KeyError: 'added_tokens'); name a folder",
        ),
        (["{tmp}/mine", "--benchmarks", "gms8k"], "--benchmarks: there is no benchmark 'gms8k'; did you mean 'gsm8k'?"),
        (["{tmp}/mine", "--benchmarks", "gsm8k,"], "--benchmarks: there is no benchmark ''; there are arithmetic"),
        (["{tmp}/mine", "--rows", "rows.xlsx"], "--rows: rows.xlsx: its name must end with .jsonl, .parquet or .csv"),
        (["{tmp}/mine", "--rows", "no/rows.csv"], "--rows: no/rows.csv: there is no folder {tmp}/no; make it first"),
        (["{tmp}/mine", "--rows", "a.csv"], "--rows: a.csv: there is a folder of that name; name a file"),
        (
            ["{tmp}/mine", "--rows", "shut/rows.csv"],
            "--rows: shut/rows.csv: nothing can be written there; name another",
        ),
        (
            ["{tmp}/mine", "--rows", "shut.csv"],
            "--rows: shut.csv: nothing can be written there; name another place, or",
        ),
        (
            ["{tmp}/mine", "--set", "exam.target={benchmark: gsm8k, source: {tmp}/nowhere}"],
            "{tmp}/nowhere/test.jsonl: no such file",
        ),
        (
            ["{tmp}/mine", "--set", "exam.target={benchmark: gsm8k, source: {tmp}/unreadable}"],
            "exam: gsm8k has no problems",
        ),
    ],
)
def test_an_exam_that_cannot_be_sat(
    run: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    write_student(tmp_path / "mine")
    for folder in ("empty", "a.csv", "shut"):
        (tmp_path / folder).mkdir()
    (tmp_path / "shut.csv").touch()
    # whoever tests as root may write anywhere
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK or Path(place).stem != "shut")
    write_gsm8k(tmp_path / "unreadable", None, '{"question": "How many?", "answer": "nobody knows"}\n')
    for name, config in (("torn", "{broken"), ("unheard", '{"model_type": "nonesuch"}'), ("pictures", VIT)):
        (write_student(tmp_path / name) / "config.json").write_text(config)
    (write_student(tmp_path / "speechless") / "tokenizer.json").write_text("{}")
    here = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    assert refused(run("evaluate", *here)).startswith(said.replace("{tmp}", str(tmp_path)))
    assert not home.root.exists()


@pytest.mark.parametrize("arguments", [["--help"], ["night", "--help"], ["journal", "--help"]])
def test_help(run: Run, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 0
    assert "Usage" in outcome.out


@pytest.mark.parametrize("command", ["ui", "services"])
def test_pages_are_not_served_to_everybody(run: Run, home: Home, command: str) -> None:
    assert refused(run(command, "--host", "0.0.0.0")).startswith("--host: 0.0.0.0 is every address at once; name the")
    assert refused(run(command, "--host", "192.0.2.1")).startswith("--host: 192.0.2.1 is no address of this machine (")
    assert not home.root.exists()


@pytest.mark.parametrize("command", ["ui", "services"])
def test_pages_whose_port_is_taken(run: Run, home: Home, command: str) -> None:
    """By anything: what answers there might be taken for the home's own server."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        told = f": {port} is taken by another program (ss -ltnp 'sport = :{port}' names it)"
        for option, free in (("--prefect-port", "--mlflow-port"), ("--mlflow-port", "--prefect-port")):
            assert refused(run(command, option, port, free, str(free_port()))).startswith(option + told)
    assert not home.root.exists()


@pytest.mark.parametrize("date", ["../../elsewhere", "????-??-??", "2026-11-31"])
def test_a_report_of_what_is_no_date(run: Run, home: Home, date: str) -> None:
    finish(home)
    assert refused(run("report", "--date", date)) == f"--date: {date} is no date; write it as 2026-11-20"


def test_a_password_is_struck_out_of_an_unforeseen_error(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("cannot reach https://me:s3cret@host/api")

    monkeypatch.setattr(cli, "_registry", fail)
    outcome = run("checkpoints")
    assert outcome.code == 1
    assert "cannot reach https://me:***@host/api" in outcome.err
    assert "s3cret" not in outcome.err
