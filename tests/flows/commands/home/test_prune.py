"""`nightschool prune` shows what it would remove, removes it, and does neither while a night runs."""

import json
from collections.abc import Callable

import pytest

from conf.load import STARTER
from conf.storage.home import Home
from tests.conf.storage.lock_holder import holder
from tests.flows.commands.command import Run
from tests.tasks.doubles.registry import DATES
from tests.tasks.doubles.registry import PrunedSchool as School


@pytest.fixture
def school(home_with_mlflow: Callable[[str], Home], run: Run, monkeypatch: pytest.MonkeyPatch) -> School:
    made = School(home_with_mlflow("school"))
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(made.home.root))
    return made


KEEP_TWO = ("--config", str(STARTER), "--set", "keep_nights=2")


def test_shown_first_then_gone(school: School, run: Run) -> None:
    serving, loser = school.version("serving", DATES[0], promote=True), school.version("a loser", DATES[0])
    code, out, _ = run("prune", "--dry-run", "--json", *KEEP_TWO)
    assert (code, out.count("\n")) == (0, 1)
    shown = json.loads(out)
    (item,), (stays,) = shown["goes"], shown["stays"]
    assert (shown["dry_run"], shown["bytes"]) == (True, item["bytes"])
    assert (item["what"], item["version"]) == (f"version 2 ({loser.name})", "2")
    assert item["bytes"] == sum(file.stat().st_size for file in loser.iterdir())
    assert (stays["digest"], stays["why"]) == (serving.name, "daytime (version 1)")
    lines = run("prune", "--dry-run", *KEEP_TWO)[1].splitlines()
    assert lines[0].startswith("would remove")
    assert lines[0].endswith(f"version 2 ({loser.name}): {item['why']}")
    assert lines[-1] == "would remove: 1, 0.0 MB; checkpoints kept: 1"
    assert loser.is_dir()
    assert json.loads(run("prune", "--json", *KEEP_TWO)[1]) == shown | {"dry_run": False}
    assert not loser.exists()
    assert school.registered() == [serving.name]
    assert run("prune", *KEEP_TWO)[1].splitlines()[-1] == "removed: 0, 0.0 MB; checkpoints kept: 1"


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_not_while_a_night_runs(school: School, run: Run, options: tuple[str, ...]) -> None:
    loser = school.version("a loser", DATES[0])
    with holder(school.home.root) as other:
        code, out, err = run("prune", *options, *KEEP_TWO)
    assert (code, out) == (3, "")
    assert f"the night 2026-11-20 is running (process {other.pid})" in err
    assert loser.is_dir()
    assert school.registered() == [loser.name]
