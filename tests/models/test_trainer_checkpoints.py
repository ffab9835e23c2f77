"""What the trainer writes: a plain checkpoint, and a state from which it goes on as if it had never stopped."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from conf.schema import LoraConfig
from models.checkpoint import digest_folder
from models.optim.trainer_state import StateError
from models.rollout import Rollout
from models.trainer import NonFiniteError, Trainer
from tests.models.support.tiny import ADVANTAGES, PRECISION, trainer_config, write_tiny
from tests.models.support.weights import same, weights_of

ADAPTERS = [None, LoraConfig(rank=4, alpha=8), LoraConfig(rank=4, alpha=8, dropout=0.3)]


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("lora", ADAPTERS, ids=["full", "lora", "dropout"])
def test_going_on_is_bit_for_bit_the_same(
    folder: Path, rollouts: list[Rollout], tmp_path: Path, lora: LoraConfig | None, steps: int
) -> None:
    """Two rounds, the second one's last step bad, then save, load and two more; against four without a break.

    The two trainers take turns: neither draws from the other's random numbers.
    """
    config = trainer_config(lora=lora, microbatch_tokens=20, steps_per_round=steps)
    config = config.model_copy(update={"optimizer": config.optimizer.model_copy(update={"warmup_steps": 6})})
    whole = Trainer.load(folder, config)
    whole.update(rollouts, ADVANTAGES)
    whole.update(rollouts, [*ADVANTAGES[:3], math.inf, *ADVANTAGES[4:]])  # of group 1, the second step's
    whole.save(tmp_path / "checkpoint", tmp_path / "state")
    # with adapters the state belongs to the night's base
    again = Trainer.load(tmp_path / "checkpoint" if lora is None else folder, config, tmp_path / "state")
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


def test_bad_steps_before_and_after_a_break_are_in_a_row(folder: Path, rollouts: list[Rollout], tmp_path: Path) -> None:
    bad = [math.inf, *ADVANTAGES[1:]]
    trainer = Trainer.load(folder, trainer_config())
    for _ in range(2):
        trainer.update(rollouts, bad)
    trainer.save(tmp_path / "checkpoint", tmp_path / "state")
    again = Trainer.load(folder, trainer_config(), tmp_path / "state")
    with pytest.raises(NonFiniteError, match="3 steps in a row"):
        again.update(rollouts, bad)


def test_a_state_saved_over_the_one_it_was_read_from(folder: Path, rollouts: list[Rollout], tmp_path: Path) -> None:
    """Nothing of a trainer hangs on the file that it came from."""
    trainer = Trainer.load(folder, trainer_config())
    trainer.update(rollouts, ADVANTAGES)
    trainer.save_state(tmp_path / "state", "one")
    again = Trainer.load(folder, trainer_config(), tmp_path / "state")
    again.save_state(tmp_path / "state", "one")
    trainer.save_state(tmp_path / "other", "one")
    assert digest_folder(tmp_path / "state") == digest_folder(tmp_path / "other")


@pytest.mark.parametrize("now", [LoraConfig(rank=4, alpha=8), LoraConfig(rank=8, alpha=8)], ids=["full", "rank"])
def test_a_state_of_other_weights_than_are_trained_is_refused(
    folder: Path, rollouts: list[Rollout], tmp_path: Path, now: LoraConfig
) -> None:
    """The night trained all weights, or adapters of another rank."""
    before = None if now.rank == 4 else LoraConfig(rank=4, alpha=8)
    trainer = Trainer.load(folder, trainer_config(lora=before))
    trainer.update(rollouts, ADVANTAGES)
    trainer.save_state(tmp_path / "state", "one")
    with pytest.raises(StateError, match="belongs to other weights") as refused:
        Trainer.load(folder, trainer_config(lora=now), tmp_path / "state")
    assert "\n" not in str(refused.value)


def test_a_state_of_another_checkpoint_is_refused(folder: Path, tmp_path: Path) -> None:
    Trainer.load(folder, trainer_config()).save_state(tmp_path / "state", "one")
    assert Trainer.load(folder, trainer_config(), tmp_path / "state", checkpoint_digest="one").step == 0
    with pytest.raises(StateError, match="belongs to the checkpoint one, not to two"):
        Trainer.load(folder, trainer_config(), tmp_path / "state", checkpoint_digest="two")


def test_a_state_of_other_weights_wins_over_the_checkpoint(
    folder: Path, rollouts: list[Rollout], tmp_path: Path
) -> None:
    """After round 1 the trainer is loaded from the night's base and the last round's state."""
    trainer = Trainer.load(folder, trainer_config())
    trainer.update(rollouts, ADVANTAGES)
    trainer.save(tmp_path / "checkpoint", tmp_path / "state")
    again = Trainer.load(folder, trainer_config(), tmp_path / "state")
    assert same(weights_of(again), weights_of(trainer))


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


def test_tokenizer_and_template_come_along_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    """The model's card, weights in other files and folders do not: they would be those of another checkpoint."""
    source = tmp_path / "source"
    write_tiny(source)
    (source / "vocab.txt").write_bytes(b"\x00\r\n\xff")
    (source / "README.md").write_text("notes")
    (source / "pytorch_model.bin").write_bytes(b"old")
    (source / "model.safetensors.index.json").write_text("{}")
    (source / "pytorch_model.bin.index.json").write_text("{}")
    (source / "onnx").mkdir()
    target = tmp_path / "target"
    Trainer.load(source, trainer_config()).save_checkpoint(target)
    names = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "vocab.txt"]
    for name in names:
        assert (target / name).read_bytes() == (source / name).read_bytes()
    own = {"config.json", "generation_config.json", "model.safetensors", "probe.json"}
    assert {file.name for file in target.iterdir()} == own | set(names)
    assert same(weights_of(Trainer.load(target, trainer_config())), weights_of(Trainer.load(folder, trainer_config())))


def test_the_same_weights_make_the_same_checkpoint(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        Trainer.load(folder, trainer_config()).save_checkpoint(tmp_path / name)
    Trainer.load(tmp_path / "one", trainer_config()).save_checkpoint(tmp_path / "three")
    assert len({digest_folder(tmp_path / name) for name in ("one", "two", "three")}) == 1
