"""Half of a lesson: the weights midway, which the engine can be proven to have."""

from pathlib import Path

import pytest
from safetensors.torch import load_file

from models.checkpoint import digest_folder
from models.engine.sync_probe import file_logprobs, read_probe
from models.lessons.half_step import write_half_step
from models.trainer import Trainer
from tests.models.support.tiny import sampled_groups, trainer_config, write_tiny


def test_the_weights_are_midway(tmp_path: Path) -> None:
    before = write_tiny(tmp_path / "before")
    trainer = Trainer.load(before, trainer_config(learning_rate=1e-3))
    trainer.update(sampled_groups(before, [[4, 5], [6, 3]]), [1.0, -1.0, 0.5, -0.5])
    after = tmp_path / "after"
    trainer.save_checkpoint(after)
    for name in ("half", "again"):
        write_half_step(before, after, tmp_path / name)
    half = tmp_path / "half"
    assert digest_folder(half) == digest_folder(tmp_path / "again")
    ours, middle, theirs = (load_file(folder / "model.safetensors") for folder in (before, half, after))
    kept = changed = 0.0
    for name, weights in middle.items():
        change = theirs[name].float() - ours[name].float()
        left = weights.float() - ours[name].float()
        assert ((left - change / 2).abs() <= change.abs() / 2 + 2.0**-8 * weights.abs().float()).all()
        kept += float((left * change).sum())
        changed += float(change.square().sum())
    assert kept / changed == pytest.approx(0.5, abs=0.05)
    probe = read_probe(half)
    assert probe is not None
    assert probe.difference(file_logprobs(half, probe.token_ids)) < 1e-6
