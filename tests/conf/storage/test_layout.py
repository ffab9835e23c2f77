"""A home that another version wrote is refused in one line, with the way to go on."""

from pathlib import Path

import pytest

from conf.storage.home import Home, InputError
from flows.run.context import settle_layout


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path))
    return Home(tmp_path)


def test_the_first_night_notes_the_layout_and_later_ones_leave_it(home: Home) -> None:
    settle_layout(Home.here())
    assert home.layout_file.read_text() == '{"version": 1}\n'
    written = home.layout_file.stat().st_mtime_ns
    settle_layout(Home.here())
    assert home.layout_file.stat().st_mtime_ns == written


def test_a_home_from_before_the_file_is_of_the_first_version(home: Home) -> None:
    home.nights.mkdir()
    assert Home.here() == home
    assert not home.layout_file.exists()  # to look writes nothing


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '{"version": 2}',
            "a newer version of Night school wrote this home (layout 2, this one knows 1): go on with that",
        ),
        (
            '{"version": 0}',
            "another version of Night school wrote this home (layout 0, this one knows 1): go on with that",
        ),
        ('{"version": "two"}', "another version of Night school wrote this home (layout two, this one knows 1)"),
        ("{}", 'layout.json: it was damaged; write {"version": 1} into it if this home is one of this version'),
        ("[1", "layout.json: it was damaged"),
        ("3", "layout.json: it was damaged"),
    ],
)
def test_another_layout_is_refused(home: Home, content: str, said: str) -> None:
    home.layout_file.write_text(content)
    with pytest.raises(InputError) as caught:
        Home.here()
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert str(home.root) in str(caught.value)
