"""Checkpoints: what their digest covers, and that keeping and verifying them can be repeated."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from conf.storage import durable
from models.hf.checkpoint import (
    DamagedCheckpointError,
    base_of,
    copy_companions,
    digest_file,
    digest_folder,
    is_intact,
    keep,
    make_durable,
    parent_of,
    same_weights,
    verify,
    write_lineage,
    wrong_precisions,
)
from tests.damage import flip_a_bit

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


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "new").write_bytes(b""),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / "config.json").rename(folder / "other.json"),
        lambda folder: (folder / "config.json").write_bytes(b"{} "),
        lambda folder: (folder / "readme.md").write_bytes(b"not the card"),
        lambda folder: (folder / "README.md.safetensors").write_bytes(b"weights"),
        lambda folder: write_lineage(folder, None),
    ],
    ids=["added", "removed", "renamed", "longer", "not the card", "weights", "lineage"],
)
def test_the_digest_changes_with_any_file(tmp_path: Path, change: Callable[[Path], object]) -> None:
    before = digest_folder(fill(tmp_path))
    change(tmp_path)
    assert digest_folder(tmp_path) != before


def test_the_card_and_the_path_are_outside(tmp_path: Path) -> None:
    """With what a crash leaves of the card, and what the editors of those who edit it do."""
    before = digest_folder(fill(tmp_path / "one"))
    for name in ("README.md", "README.md.draft", ".README.md.swp", "README.md~"):
        (tmp_path / "one" / name).write_text("my favourite")
    assert digest_folder(tmp_path / "one") == before
    assert digest_folder(fill(tmp_path / "two")) == before


def test_keeping_the_same_again_leaves_what_is_there(tmp_path: Path) -> None:
    first = keep(fill(tmp_path / "draft"), tmp_path / "new" / "checkpoints")
    assert first == tmp_path / "new" / "checkpoints" / digest_folder(first)
    (first / "README.md").write_text("my favourite")
    inode = (first / "config.json").stat().st_ino
    assert keep(fill(tmp_path / "draft"), first.parent) == first
    assert not (tmp_path / "draft").exists()
    assert (first / "config.json").stat().st_ino == inode
    assert (first / "README.md").read_text() == "my favourite"


def test_a_flipped_bit_is_found_and_keeping_replaces_it(tmp_path: Path) -> None:
    kept = keep(fill(tmp_path / "draft"), tmp_path)
    verify(kept)
    flip_a_bit(kept / "model.safetensors")
    assert not is_intact(kept)
    with pytest.raises(DamagedCheckpointError, match=kept.name):
        verify(kept)
    verify(keep(fill(tmp_path / "draft"), tmp_path))
    shutil.rmtree(kept)
    with pytest.raises(DamagedCheckpointError, match="is gone"):
        verify(kept)


def test_what_is_flushed_to_disk_and_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[str] = []
    sync = durable.sync

    def note(path: Path) -> None:
        forced.append(path.name)
        sync(path)

    monkeypatch.setattr(durable, "sync", note)
    monkeypatch.setattr("models.hf.checkpoint.sync", note)
    files = {file.name for file in fill(tmp_path / "draft").rglob("*")}
    kept = keep(tmp_path / "draft", tmp_path / "checkpoints", durable=False)
    assert forced == [tmp_path.name]  # the folder of all checkpoints was new
    forced.clear()
    make_durable(kept)
    assert set(forced) == {*files, kept.name, "checkpoints"}
    assert forced[-1] == "checkpoints"  # its entry last: what it names is there by then
    forced.clear()
    keep(fill(tmp_path / "draft"), tmp_path / "checkpoints")  # a checkpoint that an interrupted `keep` left
    assert set(forced) == {*files, kept.name, "checkpoints"}


def test_lineage_is_part_of_the_digest_and_names_an_adapters_base(tmp_path: Path) -> None:
    assert base_of(fill(tmp_path / "full")) == tmp_path / "full"  # without lineage
    write_lineage(fill(tmp_path / "full"), None)
    full = keep(tmp_path / "full", tmp_path)
    assert (base_of(full), parent_of(full)) == (full, None)
    fill(tmp_path / "draft", {"adapter_model.safetensors": b"1"})
    write_lineage(tmp_path / "draft", full.name, full.name)
    adapter = keep(tmp_path / "draft", tmp_path)
    assert (base_of(adapter), parent_of(adapter)) == (full, full.name)
    shutil.rmtree(full)
    with pytest.raises(DamagedCheckpointError, match=f"{adapter.name}.*{full.name}"):
        base_of(adapter)


def test_what_lies_beside_the_weights(tmp_path: Path) -> None:
    others = {"model.safetensors.index.json": b"{}", "README.md": b"mine", "README.md~": b"older"}
    files = FILES | others | {"tokenizer.json": b"[]"}
    copy_companions(fill(tmp_path / "from", files), tmp_path / "to")
    assert {file.name for file in (tmp_path / "to").iterdir()} == {"config.json", "tokenizer.json"}


def test_tensors_of_another_precision(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"dtype": "bfloat16"}')
    tensors = {"a": torch.ones(2, dtype=torch.bfloat16), "b": torch.ones(2)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert wrong_precisions(tmp_path) == ["b (float32, not bfloat16)"]
    (tmp_path / "config.json").write_text('{"torch_dtype": "float32"}')
    assert wrong_precisions(tmp_path) == ["a (bfloat16, not float32)"]


def test_the_same_weights(tmp_path: Path) -> None:
    def written(name: str, **tensors: list[float]) -> Path:
        fill(tmp_path / name, {"config.json": name.encode()})
        save_file({k: torch.tensor(v) for k, v in tensors.items()}, tmp_path / name / "model.safetensors")
        return tmp_path / name

    one = written("one", a=[1.0, 2.0], b=[3.0])
    assert same_weights(one, written("again", b=[3.0], a=[1.0, 2.0]))
    assert not same_weights(one, written("moved", a=[1.0, 2.0], b=[3.5]))
    assert not same_weights(one, written("shorter", a=[1.0], b=[3.0]))
    assert not same_weights(one, written("fewer", a=[1.0, 2.0]))
