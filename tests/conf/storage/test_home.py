"""The home is its owner's alone, of one version, and no name read from a file leads out of it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from conf.storage.home import Home, NightError, inside
from tasks.journal.carry_over import prepare_home
from tests.refusal import refusal


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "away" / "school")
    assert not home.make_private()
    assert mode(home.root) == 0o700
    assert mode(home.root.parent) == 0o755  # which may be anybody's
    assert not home.make_private()


@pytest.mark.parametrize("wide", [0o755, 0o750, 0o711, 0o777])
def test_a_wider_one_is_narrowed_once(tmp_path: Path, wide: int) -> None:
    home = Home(tmp_path / "school")
    home.journal.mkdir(parents=True)
    home.root.chmod(wide)
    (tmp_path / "school" / "notes.txt").write_text("mine")
    assert home.make_private()
    assert mode(home.root) == 0o700
    assert not home.make_private()


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "projects" / "thesis").mkdir(parents=True)
    line = refusal(Home(tmp_path / "projects").make_private)
    assert "can enter this folder, and it holds other things; use a separate" in line
    assert mode(tmp_path / "projects") == 0o755
    (tmp_path / "projects").chmod(0o700)
    assert not Home(tmp_path / "projects").make_private()


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    assert "notes: cannot be a home" in refusal(Home(tmp_path / "notes").make_private)


def test_somebody_elses_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "school").mkdir()
    error = PermissionError(1, "Operation not permitted")
    monkeypatch.setattr(Path, "chmod", Mock(side_effect=error))  # root may change every folder's
    line = refusal(Home(tmp_path / "school").make_private)
    assert "school: other users can enter it, and chmod 700 failed (Operation not permitted); use" in line


@pytest.mark.parametrize("name", ["2026-11-20", "0a1b2c", "digest3", "v1.0_x"])
def test_names_of_things_in_a_folder(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../../x", "/etc", "a/b", ".hidden", "a\0b", "a\n", "~root", "-rf", "\\x", "․․"]
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    assert "is not a valid name here" in refusal(inside, tmp_path, name, kind=NightError)
    with pytest.raises(NightError):
        Home(tmp_path).night(name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path))
    return Home(tmp_path)


def test_a_night_writes_the_layout_once(home: Home) -> None:
    assert Home.here() == home
    assert not home.layout_file.exists()  # looking writes nothing
    prepare_home(home)
    written = home.layout_file.stat().st_mtime_ns
    prepare_home(Home.here())
    assert (home.layout_file.read_text(), home.layout_file.stat().st_mtime_ns) == ('{"version": 2}\n', written)


@pytest.mark.parametrize("content", ['{"version": 3}', "{}", "[1"])
def test_another_layout_is_refused(home: Home, content: str) -> None:
    home.layout_file.write_text(content)
    said = f"another version of Night school wrote this home (layout {content}, this one knows 2): use that version"
    assert refusal(Home.here).startswith(f"{home.root}: {said}, or name another home with NIGHTSCHOOL_HOME")
