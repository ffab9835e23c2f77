"""The commands of `flows/cli.py`, and what all commands have in common: exit codes, and one line for a wrong input."""

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from conf.load import load_night
from conf.schema import SandboxConfig
from conf.storage.home import Home
from flows import cli
from flows.commands.play import ANTS
from flows.web.address import free_port
from rewards.data.benchmarks import exam_problems
from tests.flows.commands.command import DATE, Outcome, Run, finish, refused
from tests.tasks.doubles.registry import School


def test_status_and_report(run: Run, home: Home) -> None:
    assert run("status").out == f"no nights in {home.root}; `nightschool night` runs the first\n"
    assert run("status", "--json").out == '{"running": null, "serving": null, "nights": []}\n'
    assert "no report yet" in refused(run("report"))
    assert not home.root.exists()
    finish(home)
    line = f"{DATE}  promoted     arithmetic-1-2: 22 of 400 (5.5 %) → 245 of 400 (61.3 %)\n"
    assert run("status").out.startswith(line)
    assert "no report yet" in refused(run("report", "--markdown"))
    (home.night(DATE) / "report.md").write_text("# The night\n\n| a |\n")
    for arguments in ([], ["--date", DATE]):
        assert run("report", *arguments).out == f"{home.night(DATE)}/report.html\n"
        assert run("report", "--markdown", *arguments).out == "# The night\n\n| a |\n"


def test_a_home_without_checkpoints(run: Run, home: Home, tmp_path: Path) -> None:
    pruned = run("prune", "--json")
    assert (pruned.code, json.loads(pruned.out)) == (0, {"dry_run": False, "bytes": 0, "goes": [], "stays": []})
    assert list(tmp_path.iterdir()) == []
    assert run("checkpoints", "--json") == Outcome(0, '{"daytime": null, "previous": null, "versions": []}\n', "")
    assert run("checkpoints").out == "no checkpoints yet: `nightschool night` makes the first\n"
    assert refused(run("rollback")).startswith("rollback: no other version has served yet")
    assert refused(run("promote", "3")) == "promote: there is no version 3; there are none yet"
    assert not home.root.exists()


@pytest.mark.parametrize("command", ["checkpoints", "promote 1", "rollback", "prune --dry-run", "serve --port={port}"])
def test_a_registry_that_cannot_be_read_is_one_line(run: Run, home: Home, command: str) -> None:
    words = command.format(port=free_port()).split()
    nowhere = refused(run(*words, "--set=tracking.tracking_uri=http://127.0.0.1:9"))
    assert nowhere.startswith("MLflow's server does not answer at http://127.0.0.1:9/version")
    home.root.mkdir(mode=0o700, parents=True)
    home.database_file.write_text("no database")
    damaged = f"{home.database_file}: this database is damaged or cannot be opened (file is not a database); "
    assert refused(run(*words)).startswith(damaged)
    assert list(home.root.iterdir()) == [home.database_file]


def test_promotion_and_rollback(
    home_with_mlflow: Callable[[str], Home], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    school = School(made := home_with_mlflow("school"))
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(made.root))
    school.registry.model = "starter"
    for number, role in enumerate(("champion", "distilled", "candidate")):
        school.register(number, role, accuracy=0.1 * number)
    assert refused(run("promote", "7")) == "promote: there is no version 7; there are 1, 2, 3"
    assert "version 1 serves from now on" in run("promote", "1").out
    assert refused(run("rollback")).startswith("rollback: no other version has served yet")
    promoted = json.loads(run("promote", "3", "--json").out)
    assert promoted == {"version": "3", "digest": school.checkpoints[2].name, "can_roll_back": True}
    listed = json.loads(run("checkpoints", "--json").out)
    assert (listed["daytime"], listed["previous"]) == ("3", "1")
    assert [version["accuracy"] for version in listed["versions"]] == [0.0, 0.1, 0.2]
    assert [version["digest"] for version in listed["versions"]] == [folder.name for folder in school.checkpoints]
    back = run("rollback")
    assert (back.code, back.err) == (0, "")
    assert back.out.startswith(f"version 1 ({school.checkpoints[0].name}) serves again")
    assert school.aliases() == ("1", "3")
    header, *rows = run("checkpoints").out.splitlines()
    assert header.split() == ["version", "digest", "night", "role", "accuracy", "problems", "alias"]
    assert [row.split()[-1] for row in rows] == ["daytime", "100", "previous"]
    (school.checkpoints[2] / "model.safetensors").write_text("damaged")
    for attempt in (run("rollback"), run("promote", "3")):
        assert refused(attempt).startswith(f"{school.checkpoints[2]}: changed, damaged or missing")
    assert school.aliases() == ("1", "3")


def test_a_password_is_struck_out_of_an_unforeseen_error(run: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("cannot reach https://me:s3cret@host/api")
    monkeypatch.setattr(cli, "_registry", Mock(side_effect=error))
    outcome = run("checkpoints")
    assert outcome.code == 1
    assert "cannot reach https://me:***@host/api" in outcome.err
    assert "s3cret" not in outcome.err


def test_an_episode_of_the_exam_is_played(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "ACT: MOVE up")
    part = load_night(ANTS).exam.target
    asked = exam_problems(part, SandboxConfig())[3].problem_id
    assert f"{asked}: value 0.00" in run("play", "--episode", "3").out
    assert refused(run("play", "--episode", "100")) == "--episode 100: ants-0 has 100 episodes, 0 to 99"
    gsm8k = "--set=exam.target={benchmark: gsm8k}"
    assert refused(run("play", gsm8k)).startswith("exam.target: gsm8k is no environ")
    assert refused(run("play", gsm8k, "--tier", "1")).startswith("--tier 1: only ants have tiers")
