"""Checkpoints: what their digest covers, and that moving and verifying them is safe to repeat."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.checkpoint import DamagedCheckpointError, digest_file, digest_folder, keep, parent_of, verify, write_lineage

FILES = {"config.json": b"{}", "model.safetensors": bytes(range(256)), "more/template.jinja": b"{{ x }}\n"}


def fill(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_the_digest_by_hand(tmp_path: Path) -> None:
    fill(tmp_path, {"b": b"2", "a": b"1"})
    lines = "".join(f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in (("a", b"1"), ("b", b"2")))
    assert digest_folder(tmp_path) == hashlib.sha256(lines.encode()).hexdigest()[:20]
    assert digest_file(tmp_path / "a") == hashlib.sha256(b"1").hexdigest()


@given(st.sampled_from(sorted(FILES)), st.integers(0, 10_000), st.integers(1, 255))
@settings(deadline=None)
def test_the_digest_changes_with_any_byte(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: int, by: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "bytes"
    before = digest_folder(fill(folder))
    content = bytearray(FILES[name])
    content[at % len(content)] ^= by
    (folder / name).write_bytes(content)
    assert digest_folder(folder) != before
    assert digest_folder(fill(folder)) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "new").write_bytes(b""),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "config.json").rename(folder / "other.json"),
        lambda folder: (folder / "config.json").write_bytes(b"{} "),
        lambda folder: (folder / "readme.md").write_bytes(b"not the card"),
        lambda folder: write_lineage(folder, None),
    ],
    ids=["added", "removed", "renamed", "longer", "not the card", "lineage"],
)
def test_the_digest_changes_with_any_file(tmp_path: Path, change: Callable[[Path], object]) -> None:
    before = digest_folder(fill(tmp_path))
    change(tmp_path)
    assert digest_folder(tmp_path) != before


def test_the_card_and_the_place_are_outside(tmp_path: Path) -> None:
    before = digest_folder(fill(tmp_path / "one"))
    (tmp_path / "one" / "README.md").write_text("my favourite")
    assert digest_folder(tmp_path / "one") == before
    assert digest_folder(fill(tmp_path / "two")) == before


def test_the_parent_is_part_of_the_digest(tmp_path: Path) -> None:
    digests = set()
    for parent in (None, "a" * 20, "b" * 20):
        write_lineage(fill(tmp_path), parent)
        assert parent_of(tmp_path) == parent
        digests.add(digest_folder(tmp_path))
    assert len(digests) == 3


def test_keeping_moves_the_draft(tmp_path: Path) -> None:
    digest = digest_folder(fill(tmp_path / "draft"))
    kept = keep(tmp_path / "draft", tmp_path / "a" / "checkpoints")
    assert kept == tmp_path / "a" / "checkpoints" / digest
    assert not (tmp_path / "draft").exists()
    verify(kept)
    assert {str(file.relative_to(kept)) for file in kept.rglob("*") if file.is_file()} == set(FILES)


def test_keeping_the_same_again_leaves_what_is_there(tmp_path: Path) -> None:
    first = keep(fill(tmp_path / "draft"), tmp_path / "checkpoints")
    (first / "README.md").write_text("my favourite")
    place = (first / "config.json").stat().st_ino
    assert keep(fill(tmp_path / "draft"), tmp_path / "checkpoints") == first
    assert not (tmp_path / "draft").exists()
    assert (first / "config.json").stat().st_ino == place
    assert (first / "README.md").read_text() == "my favourite"


def test_keeping_replaces_one_that_was_damaged(tmp_path: Path) -> None:
    first = keep(fill(tmp_path / "draft"), tmp_path / "checkpoints")
    (first / "config.json").write_bytes(b"[]")
    assert keep(fill(tmp_path / "draft"), tmp_path / "checkpoints") == first
    verify(first)


def test_verifying_finds_a_flipped_bit(tmp_path: Path) -> None:
    kept = keep(fill(tmp_path / "draft"), tmp_path)
    verify(kept)
    content = bytearray((kept / "model.safetensors").read_bytes())
    content[100] ^= 1
    (kept / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=f"{kept.name}: it was changed or damaged"):
        verify(kept)


def test_verifying_finds_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(DamagedCheckpointError):
        verify(tmp_path / ("0" * 20))
