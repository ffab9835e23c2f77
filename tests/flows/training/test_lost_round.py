"""What a night finds damaged of its rounds when it goes on: made again from as far back as it takes, and no further."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from models.optim.trainer_state import TENSORS
from tests.flows.test_grpo import (  # noqa: F401  # the fixtures
    DATE,
    SCRIPT,
    School,
    ScriptedEngine,
    finished,
    school,
)

Finished = tuple[Path, ScriptedEngine, Path]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def newest_state(folder: Path, checkpoints: Path) -> None:
    """The third round was not committed, and the state that it goes on from was damaged; older ones were pruned."""
    shutil.rmtree(folder / "round-03" / "checkpoint")
    flip(folder / "state" / "round-02" / TENSORS)


def newest_checkpoint(folder: Path, checkpoints: Path) -> None:
    shutil.rmtree(folder / "round-03" / "checkpoint")
    flip(checkpoints / noted(folder, 2) / "model.safetensors")


def candidate(folder: Path, checkpoints: Path) -> None:
    flip(checkpoints / noted(folder, 3) / "model.safetensors")


def old_scores(folder: Path, checkpoints: Path) -> None:
    """They know how long grading took: made again, they are other bytes."""
    flip(folder / "round-01" / "score" / "scores.parquet")


def old_rollouts(folder: Path, checkpoints: Path) -> None:
    """Of a refill in the second round: the policy that they were sampled from is pruned, but for its state."""
    flip(folder / "round-02" / "refill-1" / "sample" / "rollouts.parquet")


def noted(folder: Path, number: int) -> str:
    return (folder / f"round-0{number}" / "checkpoint" / "checkpoint.txt").read_text()


# What was damaged, which calls of the engine are asked once more, and which updates are taken once more.
DAMAGES: list[tuple[Callable[[Path, Path], None], list[int], list[int]]] = [
    (newest_state, [], [1, 2, 3]),
    (newest_checkpoint, [], [1, 2, 3]),
    (candidate, [], [3]),
    (old_scores, [], []),
    (old_rollouts, [2], [1]),
]


@pytest.mark.parametrize(
    ("damage", "sampled", "taken"),
    [
        pytest.param(*case, marks=[pytest.mark.full] if case[0] is newest_state else [], id=case[0].__name__)
        for case in DAMAGES  # of the two that take all rounds again one is enough for each run
    ],
)
def test_what_was_damaged_is_made_again_to_the_same_bits(
    finished: Finished,  # noqa: F811
    school: School,  # noqa: F811
    damage: Callable[[Path, Path], None],
    sampled: list[int],
    taken: list[int],
) -> None:
    undisturbed, whole, expected = finished
    home = school.home("undisturbed")
    name = f"damaged-{damage.__name__}"
    shutil.copytree(home.root, school.root / name)
    damaged = school.home(name)
    damage(damaged.night(DATE), damaged.checkpoints)
    engine = ScriptedEngine(school.student, [SCRIPT[call] for call in sampled])
    folder, found = school.study(name, engine)
    assert found.name == expected.name
    assert engine.seeds == [whole.seeds[call] for call in sampled]
    manifests = [f"round-0{number}/checkpoint/manifest.json" for number in (1, 2, 3)]
    again = [
        n for n, file in enumerate(manifests, 1) if (folder / file).read_bytes() != (undisturbed / file).read_bytes()
    ]
    assert again == taken
    for number in (1, 2, 3):
        assert noted(folder, number) == noted(undisturbed, number)
    assert not list(folder.rglob("*.draft"))


def test_the_night_says_what_it_takes_again(
    finished: Finished,  # noqa: F811
    school: School,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import logging

    monkeypatch.setattr(logging.getLogger("nightschool"), "propagate", True)
    shutil.copytree(school.home("undisturbed").root, school.root / "told")
    told = school.home("told")
    candidate(told.night(DATE), told.checkpoints)
    school.study("told", ScriptedEngine(school.student, []))
    assert f"round 3 is taken again: its checkpoint {finished[2].name} was damaged" in caplog.text
    figures = json.loads((told.night(DATE) / "round-03" / "checkpoint" / "metrics.json").read_text())
    assert "seconds_round" not in figures
