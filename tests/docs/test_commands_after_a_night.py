"""Commands of README and docs/ that need a finished night are run as they are printed there."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.storage.home import SHORT_REPORT, SUMMARY, Home
from flows import cli
from models.hf.checkpoint import keep, write_lineage
from tasks.report.markdown import render_markdown
from tasks.report.page import render
from tests.docs.pages import blocks, commands
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.night import write_night
from tests.tasks.doubles.registry import School

DATE = "2026-11-20"  # as in the docs
STEPS = [  # each command in its turn, and a part of its output
    ("nightschool status", f"{DATE}  promoted     arithmetic-1-2: "),
    ("nightschool report", f"/school/nights/{DATE}/report.html"),
    ("nightschool report --markdown", "# Night of 20 November 2026: "),
    (f"nightschool report --markdown --date {DATE}", "# Night of 20 November 2026: "),
    ("nightschool checkpoints", "  62.0 %       100  daytime"),
    ("nightschool rollback", "version 1 ("),
    ("nightschool rollback", "version 2 ("),
    ("nightschool prune --dry-run", "would remove: 3, 0.0 MB; checkpoints kept: 2"),
]


@pytest.fixture
def folder(home_with_mlflow: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `school/` after a night that promoted its candidate; three of its checkpoints are unused."""
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
    decision = json.loads((night / "decide" / "decision.json").read_text())
    (night / SHORT_REPORT).write_text(render_markdown(summary, decision))
    (night / SUMMARY).write_text(json.dumps(summary))
    monkeypatch.delenv("NIGHTSCHOOL_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("prefect_server")  # each rollback would start one
def test_the_commands_of_the_morning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours run in this process, because the libraries take seconds to import."""
    shown = [words for block in blocks("sh") for words in commands(block.text)]
    for command, part in STEPS:
        assert command.split() in shown, f"no page has {command}"
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert ended.value.code in (0, None), printed.err
        assert part in printed.out, f"$ {command}\n{printed.out}"
    snippet = next(block for block in blocks("sh") if block.page.name == "serve-by-day.md" and "models:/" in block.text)
    name, uri = snippet.text.splitlines()[0].removeprefix("export ").split("=")
    python, option, program = shlex.split("\n".join(snippet.text.splitlines()[1:]))
    assert (python, option) == ("python", "-c")
    monkeypatch.setenv(name, uri)
    exec(program, {})
    assert capsys.readouterr().out
