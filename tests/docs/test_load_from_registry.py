"""docs/how-to/serve-by-day.md loads the model that serves by its alias; the snippet is run as it is printed there."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from conf.storage.home import Home
from models.hf.checkpoint import keep, write_lineage
from tests.docs.pages import blocks
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles.registry import School


def test_the_snippet(
    home_with_mlflow: Callable[[str], Home],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    school = School(home := home_with_mlflow("school"))
    school.registry.model = "starter"
    write_lineage(draft := write_tiny(tmp_path / "student"), None)
    school.checkpoints[0] = keep(draft, home.checkpoints)
    school.registry.promote(school.register(0).version)
    snippet = next(block for block in blocks("sh") if block.page.name == "serve-by-day.md" and "models:/" in block.text)
    export, _, program = snippet.text.partition("\n")
    name, uri = export.removeprefix("export ").split("=")
    monkeypatch.setenv(name, uri)
    monkeypatch.chdir(tmp_path)
    python, option, code = shlex.split(program)
    assert (python, option) == ("python", "-c")
    exec(code, {})
    assert capsys.readouterr().out
