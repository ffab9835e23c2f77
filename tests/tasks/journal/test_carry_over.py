"""A home of version 0.1: what its nights taught is noted beside its checkpoints, once."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from conf.storage.home import Home
from models.hf.checkpoint import learned
from models.lessons.preference_data import is_held_out
from tasks.journal.carry_over import prepare_home
from tasks.journal.read import lessons_in, valid_lines
from tasks.monitoring.incidents import end_early
from tasks.stage import commit
from tests.tasks.doubles.journals import ASKED, DAYS, corrected, journal, line, words

DONE = ("distill", "lessons/corrections", "lessons/words", "lessons/feedback")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.layout_file.write_text('{"version": 1}\n')
    for name in ("first", "second", "third"):
        (home.checkpoints / name).mkdir(parents=True)
    return home


def night(
    home: Home,
    date: str,
    champion: str,
    candidate: str,
    taken: tuple[int, int],
    *settings: str,
    replayed: Sequence[tuple[int, int]] = (),
    distilled: str = "",
    done: Sequence[str] = DONE,
    steps: int | None = None,
    later: Sequence[str] = (),
) -> None:
    """Write what a night of that version left: which bytes it took, its configuration, its lessons, its decision."""
    folder, file = home.night(date), "2026-11-20.jsonl"
    for path in ("freeze_journal", "decide", *done):
        (folder / path).mkdir(parents=True)
    noted = {"model": "starter", "bytes": {file: [taken]}, "replayed": {file: replayed}}
    (folder / "freeze_journal" / "taken.json").write_text(json.dumps(noted))
    (folder / "config.yaml").write_text(frozen_yaml(load_night(STARTER, settings)))
    for path in done:
        if path == "distill":
            (folder / path / "later.json").write_text(json.dumps(later))
        commit(folder / path, path, {}, 0.0)
    if steps is not None:
        end_early(folder, 0, "The night's hours were over", steps)
    compared = {
        model: {"target": {"before_digest": champion, "after_digest": made}}
        for model, made in {"candidate": candidate, "distilled": distilled or champion}.items()
    }
    (folder / "decide" / "decision.json").write_text(json.dumps({"target": "target", "comparisons": compared}))
    commit(folder / "decide", "decide", {}, 0.0)


def size(home: Home) -> int:
    return (home.journal / "2026-11-20.jsonl").stat().st_size


def carried(home: Home) -> dict[str, frozenset[str]]:
    """What each checkpoint has learned, once the home is carried over."""
    prepare_home(home)
    assert json.loads(home.layout_file.read_text()) == {"version": 2}
    return {name: learned(home.checkpoints / name) for name in ("first", "second", "third")}


def test_a_checkpoint_has_what_the_nights_of_its_line_taught(home: Home) -> None:
    journal(home.root, corrected("4"), words("owl"))
    end = size(home)
    night(home, DAYS[0], "first", "second", (0, end))
    one = lessons_in(home.journal, DAYS[0])
    journal(home.root, corrected("5"))
    night(home, DAYS[1], "second", "third", (end, size(home)))
    journal(home.root, corrected("new"))
    assert carried(home) == {"first": frozenset(), "second": one, "third": one | {*_of(home, 3)}}
    assert carried(home)["second"] == one  # nothing is done again


def _of(home: Home, number: int) -> set[str]:
    return {*valid_lines(home.journal, DAYS[0])[number - 1].rows}


@pytest.mark.parametrize(
    "lesson",
    [
        {"done": ()},
        {"done": DONE, "steps": 0},
        {"done": ("distill", "lessons/words")},
        {"candidate": "first", "distilled": "first"},
    ],
)
def test_what_was_never_taught_is_not_learned(home: Home, lesson: dict[str, Any]) -> None:
    journal(home.root, corrected("4"))
    night(home, DAYS[0], "first", lesson.pop("candidate", "second"), (0, size(home)), **lesson)
    assert carried(home)["second"] == frozenset()


def test_what_was_held_out_or_had_no_room_is_not_learned(home: Home) -> None:
    asked = [[{"role": "user", "content": f"{number} + 2?"}] for number in range(20)]
    for messages in asked:
        journal(home.root, line("correction", messages=messages, response="?", correction="!"))
    journal(home.root, *(line("trace", messages=ASKED, response=f"#### {n}", teacher="me") for n in (4, 5)))
    later = hashlib.sha256(json.dumps([ASKED, "#### 5"]).encode()).hexdigest()
    share = load_night(STARTER).unseen_share
    night(home, DAYS[0], "first", "second", (0, size(home)), later=[later])
    taught = [number for number, messages in enumerate(asked, 1) if not is_held_out(messages, share)]
    assert 5 < len(taught) < 20
    expected = {name for number in (*taught, 21) for name in _of(home, number)}
    assert carried(home)["second"] == expected
