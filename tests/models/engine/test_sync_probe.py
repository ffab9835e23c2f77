"""The probe: what it is made of, and how far two sets of log-probabilities are apart."""

from pathlib import Path

import pytest
import torch

from models.engine.sync_probe import LENGTH, Probe, read_probe, tolerance
from models.hf.merging import file_logprobs
from models.trainer import Trainer
from tests.models.support.tiny import plain_logprobs, plain_model, trainer_config, write_tiny


def test_the_difference_by_hand() -> None:
    probe = Probe([5, 6, 7, 8], [-1.0, -2.0, -4.0])
    assert probe.difference([-1.5, -2.0, -3.0]) == pytest.approx(0.5)
    assert probe.difference([-1.5]) == pytest.approx(0.5)  # an engine with little context: the first tokens
    assert not probe.difference([-1.0, float("nan"), -4.0]) <= 10.0


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_every_checkpoint_of_the_trainer_has_one(tmp_path: Path, architecture: str) -> None:
    folder = write_tiny(tmp_path / "tiny", architecture)  # type: ignore[arg-type]
    Trainer.load(folder, trainer_config()).save_checkpoint(tmp_path / "saved")
    probe = read_probe(tmp_path / "saved")
    assert probe is not None
    assert len(probe.logprobs) == LENGTH - 1
    with torch.no_grad():
        expected = plain_logprobs(plain_model(folder), probe.token_ids[:1], probe.token_ids[1:])
    assert probe.difference(expected.tolist()) < 0.05
    assert probe.difference(file_logprobs(tmp_path / "saved", probe.token_ids)) < 0.05


def test_a_model_with_large_logits_may_differ_more() -> None:
    """In bf16, logits of 32 and more are 0.25 apart. The start of an engine shows how much that is."""
    assert tolerance(0.02) < 0.15 < 2 * 0.15 == tolerance(0.15) < tolerance(None)
