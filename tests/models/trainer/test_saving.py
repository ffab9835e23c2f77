"""What the trainer saves: a plain checkpoint, and a state from which it continues bit for bit."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from conf.schema import LoraConfig
from models.hf.checkpoint import digest_folder
from models.rollout import Rollout
from models.trainer import Trainer
from tests.models.support.tiny import ADVANTAGES, PRECISION, trainer_config
from tests.models.support.weights import same, weights_of

ADAPTERS = [None, LoraConfig(rank=4, alpha=8), LoraConfig(rank=4, alpha=8, dropout=0.3)]


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("lora", ADAPTERS, ids=["full", "lora", "dropout"])
def test_a_restored_trainer_continues_bit_for_bit(
    folder: Path, rollouts: list[Rollout], tmp_path: Path, lora: LoraConfig | None, steps: int
) -> None:
    """Two rounds, the last step not finite, then save, load and two more, against four without a break.

    The two trainers take turns: neither draws from the other's random numbers. The state wins over the checkpoint, and
    may be saved over itself.
    """
    config = trainer_config(lora=lora, microbatch_tokens=20, steps_per_round=steps)
    config = config.model_copy(update={"optimizer": config.optimizer.model_copy(update={"warmup_steps": 6})})
    whole = Trainer.load(folder, config)
    whole.update(rollouts, ADVANTAGES)
    whole.update(rollouts, [*ADVANTAGES[:3], math.inf, *ADVANTAGES[4:]])  # of group 1, the second step's
    whole.save(tmp_path / "checkpoint", tmp_path / "state")
    saved = digest_folder(tmp_path / "state")
    again = Trainer.load(folder, config, tmp_path / "state")
    again.save_state(tmp_path / "state", digest_folder(tmp_path / "checkpoint"))  # no tensor is mapped from the file
    assert digest_folder(tmp_path / "state") == saved
    assert again.step == whole.step == 2 * steps - 1
    assert again.non_finite == 1
    assert same(weights_of(again), weights_of(whole))
    for advantages in (ADVANTAGES[::-1], ADVANTAGES):
        assert {k: v for k, v in again.update(rollouts, advantages).items() if k != "seconds"} == {
            k: v for k, v in whole.update(rollouts, advantages).items() if k != "seconds"
        }
        assert same(weights_of(again), weights_of(whole))
    again.save(tmp_path / "again", tmp_path / "again-state")
    whole.save(tmp_path / "whole", tmp_path / "whole-state")
    for kind in ("", "-state"):
        assert digest_folder(tmp_path / f"again{kind}") == digest_folder(tmp_path / f"whole{kind}")


def test_a_checkpoint_is_a_plain_folder(folder: Path, rollouts: list[Rollout], tmp_path: Path) -> None:
    trainer = Trainer.load(folder, trainer_config())
    trainer.update(rollouts, ADVANTAGES)
    trainer.save_checkpoint(tmp_path)
    plain: Any = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=PRECISION)
    assert plain.config._attn_implementation == "sdpa"
    assert same(plain.state_dict(), weights_of(trainer))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["dtype"] == str(PRECISION).removeprefix("torch.")
    assert "packed_groups" not in (tmp_path / "config.json").read_text()
    before = digest_folder(tmp_path)
    Trainer.load(tmp_path, trainer_config()).save_checkpoint(tmp_path / "again")
    assert digest_folder(tmp_path / "again") == before
