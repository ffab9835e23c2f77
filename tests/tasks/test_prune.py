"""Upkeep removes what no promotion chose and nobody needs, and nothing else."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.prune import prune
from tasks.registry import Version

ELSEWHERE = ("..", ".", "../journal", "digest1/..", "/tmp/elsewhere", "sha256:00")


@dataclass
class FakeRegistry:
    """Versions, and which of them were removed."""

    found: list[Version]
    removed: list[str] = field(default_factory=list)

    def versions(self) -> list[Version]:
        return self.found

    def remove(self, version: str) -> None:
        self.removed.append(version)


def version(number: int, night: str, *aliases: str, promoted: bool = False) -> Version:
    return Version(str(number), f"digest{number}", "", night, "candidate", 0.5, promoted, aliases)


def run(tmp_path: Path, versions: list[Version], keep: int, nights: list[str]) -> tuple[list[str], FakeRegistry, Path]:
    checkpoints, registry = tmp_path / "checkpoints", FakeRegistry(versions)
    for one in versions:
        (checkpoints / one.digest).mkdir(parents=True)
    for night in nights:
        (tmp_path / "nights" / night).mkdir(parents=True)
    stand_in: Any = registry
    return prune.fn(checkpoints, tmp_path / "nights", keep, stand_in), registry, checkpoints


def test_old_losers_go_and_all_others_stay(tmp_path: Path) -> None:
    versions = [
        version(1, "2026-11-17", promoted=True),
        version(2, "2026-11-17", "previous"),
        version(3, "2026-11-17"),
        version(4, "2026-11-18"),
        version(5, "2026-11-19"),
        version(6, "2026-11-20", "daytime", promoted=True),
    ]
    nights = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"]
    removed, registry, checkpoints = run(tmp_path, versions, 2, nights)
    assert removed == ["digest3", "digest4"]
    assert registry.removed == ["3", "4"]
    assert sorted(folder.name for folder in checkpoints.iterdir()) == ["digest1", "digest2", "digest5", "digest6"]


def test_nothing_goes_before_there_are_as_many_nights(tmp_path: Path) -> None:
    versions = [version(1, "2026-11-19"), version(2, "2026-11-20")]
    assert run(tmp_path, versions, 7, ["2026-11-19", "2026-11-20"])[0] == []
    assert run(tmp_path / "none", versions, 1, [])[0] == []


def test_weights_that_are_gone_already(tmp_path: Path) -> None:
    versions = [version(1, "2026-11-18"), version(2, "2026-11-20")]
    _, registry, checkpoints = run(tmp_path, versions, 2, ["2026-11-18", "2026-11-19", "2026-11-20"])
    assert registry.removed == ["1"]
    assert not (checkpoints / "digest1").exists()


def test_what_names_no_folder_of_ours_is_left_alone(tmp_path: Path) -> None:
    """The digest is a tag in a database that others may write to."""
    (tmp_path / "journal").mkdir()
    foreign = [Version(str(n), name, "", "2026-11-01", "candidate", 0.5, False, ()) for n, name in enumerate(ELSEWHERE)]
    removed, registry, checkpoints = run(tmp_path, [], 1, ["2026-11-19", "2026-11-20"])
    (checkpoints / "digest1").mkdir(parents=True)
    registry.found = foreign
    stand_in: Any = registry
    assert prune.fn(checkpoints, tmp_path / "nights", 1, stand_in) == removed == registry.removed == []
    assert (checkpoints / "digest1").exists()
    assert (tmp_path / "journal").exists()
