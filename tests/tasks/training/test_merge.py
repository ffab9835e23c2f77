"""A night of adapters in the trainer's hands: folders that name their base, and one full checkpoint at the end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.schema import LoraConfig
from models.checkpoint import base_of, keep, parent_of, verify, write_lineage
from models.engine.sync_probe import read_probe
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tasks.training.update import merge
from tests.models.support.tiny import sampled_groups, trainer_config, write_tiny

CONFIG = trainer_config(lora=LoraConfig(rank=4, alpha=8), learning_rate=0.01)


class Here:
    """The trainer's process is this one."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    draft = write_tiny(tmp_path / "draft")
    write_lineage(draft, None)
    return keep(draft, tmp_path)


def test_a_round_leaves_an_adapter_and_the_last_one_is_merged(base: Path, tmp_path: Path) -> None:
    rollouts = sampled_groups(base, [[4, 5], [6, 3]])
    current = base
    for _ in range(2):
        predecessor = Predecessor(base, current.name, None)
        updated = trainer_process.update(predecessor, CONFIG, rollouts, [1.0, -1.0, 0.5, -0.5], tmp_path)
        before, current = current, updated.checkpoint
        verify(current)
        assert (base_of(current), parent_of(current)) == (base, before.name)
        assert not list(current.glob("model*"))
    (tmp_path / "merge").mkdir()
    arguments: dict[str, Any] = {"trust_remote_code": False, "checkpoints": tmp_path, "trainer": Here()}
    merge.write(tmp_path / "merge", adapter=current, **arguments)
    merged = tmp_path / (tmp_path / "merge" / "checkpoint.txt").read_text()
    verify(merged)
    assert (base_of(merged), parent_of(merged)) == (merged, current.name)
    assert {file.name for file in base.iterdir()} < {file.name for file in merged.iterdir()}
    adapted, proven = read_probe(current), read_probe(merged)
    assert adapted is not None
    assert proven is not None
    assert adapted.difference(proven.logprobs) < 0.05
