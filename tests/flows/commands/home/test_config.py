"""The configuration of a home: how it is written, shown, and found by the commands."""

import json
from pathlib import Path

import pytest

from conf.load import STARTER, frozen_yaml, load_night, own_file
from conf.storage.home import Home
from tests.flows.commands.command import Run, refused


def questions(folder: Path) -> Path:
    file = folder / "my questions.csv"
    file.write_text("question,answer\n" + "".join(f"{n} + 1?,{n + 1}\n" for n in range(20)))
    return file


def test_a_commands_configuration_is_the_nights_the_homes_the_last_promotions_or_the_starters(home: Home) -> None:
    assert own_file(home) == STARTER
    nights = {"2026-11-18": ("gsm8k", "promoted"), "2026-11-19": ("math", "kept"), "2026-11-20": ("mbpp", None)}
    for date, (name, decision) in nights.items():
        home.night(date).mkdir(parents=True)
        (home.night(date) / "config.yaml").write_text(frozen_yaml(load_night(STARTER.with_name(f"{name}.yaml"))))
        if decision:
            (home.night(date) / "summary.json").write_text(json.dumps({"decision": decision}))
    assert load_night(own_file(home)).name == load_night(own_file(home, "2026-11-21")).name == "gsm8k"
    assert load_night(own_file(home, "2026-11-20")).name == "mbpp"
    home.config_file.write_text(STARTER.read_text())
    assert own_file(home) == own_file(home, "2026-11-21") == home.config_file
    assert load_night(own_file(home, "2026-11-20")).name == "mbpp"


def test_init_writes_what_all_commands_use(run: Run, home: Home, tmp_path: Path) -> None:
    file = questions(tmp_path)
    done = run("init", "--data", file.name, "--student", "new:5M", "--time", "06:30", given=b"")
    assert (done.code, done.out.splitlines()[0]) == (0, str(home.config_file))
    written = load_night(home.config_file)
    assert (written.student.source, written.deadline, written.budget_minutes) == ("new:5M", "06:30", None)
    assert written.benchmarks[0].source == written.exam.target.source == str(file)
    assert written.distill == load_night(STARTER.with_name("questions.yaml")).distill
    shown = json.loads(run("config", "show", "--json").out)
    assert shown == written.model_dump(mode="json")
    (budget,) = run("config", "diff", "--set", "budget_minutes=30", str(home.config_file)).out.splitlines()
    assert budget == "budget_minutes: null → 30.0"
    assert 'name: "starter" → "my-questions-new-5m"' in run("config", "diff", str(STARTER)).out
    nightly = str(STARTER.with_name("nightly.yaml"))
    different = run("config", "diff", "--config", nightly).out
    assert all(name in different for name in ("benchmarks: [] →", "exam.target: null →", "exam.max_completion_tokens"))
    assert "already" in refused(run("init", given=b""))


@pytest.mark.parametrize(("data", "name"), [("arithmetic", "starter"), ("gsm8k", "gsm8k"), ("ants", "ants")])
def test_init_without_a_terminal_takes_the_shipped_values(run: Run, home: Home, data: str, name: str) -> None:
    run("init", "--data", data, given=b"")
    assert load_night(home.config_file) == load_night(STARTER.with_name(f"{name}.yaml"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "nothing"), "--data: nothing is neither one of arithmetic"),
        (("--time", "long"), "--time: long must look like 90m, 6h or 06:30"),
        (("--student", "new:7M"), "student.source"),
        (("--student", "startr"), "--student: startr is neither starter, new:5M, a folder nor a hub id"),
        (("--data", "one.csv"), "too few questions"),
        (("--data", "alike.csv"), "are almost the same as one of the exam"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    run: Run, home: Home, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "one.csv").write_text("question,answer\n1 + 1?,2\n")
    alike = "".join(f"What is the Latin name of the bird called {chr(97 + n) * 3}?,x\n" for n in range(20))
    (tmp_path / "alike.csv").write_text(f"question,answer\n{alike}")
    assert message in refused(run("init", *arguments, given=b""))
    assert not [*home.root.glob("*.yaml")]
