"""The commands of README and docs/ that look at a finished night, and go back from it, are run as they stand there."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.storage.home import SHORT_REPORT, SUMMARY, Home
from flows import cli
from models.checkpoint import keep, write_lineage
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tests.docs.pages import blocks, commands
from tests.docs.test_commands import run
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.night import write_night
from tests.tasks.doubles.registry import School

DATE = "2026-11-20"  # of the pages
STEPS = [  # each command in its turn, and what it says
    ("nightschool status", f"{DATE}  promoted     arithmetic-1-2: "),
    ("nightschool report", f"/school/nights/{DATE}/report.html"),
    ("nightschool report --markdown", "# Night of 20 November 2026: "),
    (f"nightschool report --markdown --date {DATE}", "# Night of 20 November 2026: "),
    ("nightschool checkpoints", "candidate  0.620  daytime"),
    ("nightschool rollback", "version 1 ("),
    ("nightschool rollback", "version 2 ("),
    ("nightschool prune --dry-run", "3 would go, 0.0 MB; checkpoints that stay: 2"),
]


@pytest.fixture
def folder(home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a `school/` in it after a night that promoted its candidate, a tiny model, and three folders of no use."""
    school = School(home := home_with_mlflow("school"))
    school.registry.model = "starter"
    for number, (role, accuracy) in enumerate((("champion", 0.03), ("candidate", 0.62))):
        draft = write_tiny(tmp_path / role)
        write_lineage(draft, school.checkpoints[0].name if number else None)
        school.checkpoints[number] = keep(draft, home.checkpoints)
        school.registry.promote(school.register(number, role, accuracy).version)
    night = home.night(DATE)
    summary = write_night(night)
    (night / "report.html").write_text(render(night, summary))
    (night / SHORT_REPORT).write_text(render_markdown(summary, json.loads((night / "decide" / "decision.json").read_text())))
    (night / SUMMARY).write_text(json.dumps(summary))
    monkeypatch.delenv("NIGHTSCHOOL_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("prefect_server")  # each rollback would start one
def test_what_is_there_after_a_night_is_found_and_gone_back_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands in one process, because the libraries take seconds to import; what a stranger runs in its own."""
    shown = [words for block in blocks("sh") for words in commands(block.text)]
    for command, said in STEPS:
        assert command.split() in shown, f"no page has {command}"
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        assert ended.value.code in (0, None), told.err
        assert said in told.out, f"$ {command}\n{told.out}"
    snippet = next(one for one in blocks("sh") if one.page.name == "registry.md" and "models:/" in one.text)
    done = run(snippet.text, folder)
    assert done.returncode == 0, done.stdout
