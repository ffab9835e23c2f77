"""The trainer's process takes no step twice, whatever fails and however often an update is asked for.

Each night here is disturbed in another way, and compared bit for bit with undisturbed rounds.
"""

import dataclasses
import gc
import json
import resource
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from conf.schema import LoraConfig, TrainerConfig
from models.hf.checkpoint import LINEAGE, digest_folder
from models.optim.trainer_state import NOTE, StateError
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor, Updated, WrongCheckpointError
from tests.models.support.tiny import trainer_config

ROUNDS = 2
ADVANTAGES = [1.0, -0.5, -0.5, 0.7, -0.7, 0.25, -0.25]
ADAPTERS = LoraConfig(rank=4, alpha=8, dropout=0.3)
CONFIGS = {
    "full": trainer_config(microbatch_tokens=20, steps_per_round=2),
    "kl": trainer_config(kl_coefficient=0.1),
    "adapters": trainer_config(microbatch_tokens=20, steps_per_round=2, lora=ADAPTERS),
}

Bits = list[tuple[str, str]]  # of every round: the checkpoint's digest, and that of the state's tensors


class Night:
    """A night's rounds, reduced to their updates."""

    def __init__(self, root: Path, student: Path, config: TrainerConfig, rollouts: list[Rollout]) -> None:
        self.root, self.config, self.rollouts = root, config, rollouts
        self.checkpoints = root / "checkpoints"
        self.base = self.checkpoints / "base"
        self.base.parent.mkdir()
        self.base.symlink_to(student)
        self.current = self.base.name
        new_process()

    def predecessor(self, number: int) -> Predecessor:
        return Predecessor(self.base, self.current, self.state(number - 1) if number > 1 else None)

    def state(self, number: int) -> Path:
        return self.root / "state" / f"round-{number:02d}"

    def update(self, number: int) -> Updated:
        """Take a round's steps; the advantages differ from round to round."""
        advantages = [*ADVANTAGES[number:], *ADVANTAGES[:number]]
        arguments = (self.config, self.rollouts, advantages, self.checkpoints)
        return trainer_process.update(self.predecessor(number), *arguments)

    def save(self, number: int, updated: Updated) -> None:
        trainer_process.save_state(updated.checkpoint.name, self.state(number))
        self.current = updated.checkpoint.name

    def rounds(self, first: int = 1, last: int = ROUNDS) -> None:
        for number in range(first, last + 1):
            self.save(number, self.update(number))

    def bits(self) -> Bits:
        notes = [json.loads((self.state(number) / NOTE).read_text()) for number in range(1, ROUNDS + 1)]
        assert [note["step"] for note in notes] == [n * self.config.grpo.steps_per_round for n in range(1, ROUNDS + 1)]
        bits = [(note["checkpoint"], note["tensors"]) for note in notes]
        assert len(set(bits)) == ROUNDS
        return bits


def new_process() -> None:
    """Forget the trainer, as the death of its process would."""
    trainer_process._trainer, trainer_process._held = None, None


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, tiny_student: Path, rollouts: list[Rollout]
) -> Callable[[str], Bits]:
    @cache
    def rounds(config: str) -> Bits:
        night = Night(tmp_path_factory.mktemp("undisturbed"), tiny_student, CONFIGS[config], rollouts)
        night.rounds()
        return night.bits()

    return rounds


@pytest.fixture
def config() -> str:
    """The default of tests that are not parametrised with one."""
    return "full"


@pytest.fixture
def expected(undisturbed: Callable[[str], Bits], config: str) -> Bits:
    return undisturbed(config)


@pytest.fixture
def night(tmp_path: Path, tiny_student: Path, config: str, expected: Bits, rollouts: list[Rollout]) -> Night:
    return Night(tmp_path, tiny_student, CONFIGS[config], rollouts)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Let no file of this process grow beyond 4 kB, which holds for root too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def file_in_the_way(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file")
    yield
    folder.unlink()


Obstacle = Callable[[Path], AbstractContextManager[None]]


@pytest.mark.parametrize(("config", "obstacle", "number"), [("full", full_disk, 1), ("adapters", file_in_the_way, 2)])
def test_the_checkpoint_cannot_be_written(night: Night, expected: Bits, obstacle: Obstacle, number: int) -> None:
    night.rounds(last=number - 1)
    with obstacle(night.checkpoints / "draft"), pytest.raises((OSError, SafetensorError)):
        night.update(number)
    with pytest.raises(WrongCheckpointError):  # without a checkpoint there is no state either
        trainer_process.save_state(expected[number - 1][0], night.state(number))
    night.rounds(first=number)
    assert night.bits() == expected


@pytest.mark.parametrize("obstacle", [full_disk, file_in_the_way])
def test_the_state_cannot_be_written(night: Night, expected: Bits, obstacle: Obstacle) -> None:
    night.rounds(last=1)
    updated = night.update(2)
    for _ in range(2):
        with obstacle(night.state(2)), pytest.raises((OSError, SafetensorError)):
            night.save(2, updated)
    night.save(2, updated)
    night.rounds(first=3)
    assert night.bits() == expected


def test_the_answer_was_lost(night: Night, expected: Bits) -> None:
    """The update is asked for again from the same predecessor, which the trainer has left by then."""
    for number in range(1, ROUNDS + 1):
        updated = night.update(number)
        assert night.update(number).checkpoint == updated.checkpoint
        night.save(number, updated)
    assert night.bits() == expected


@pytest.mark.parametrize("config", ["full", "adapters", pytest.param("kl", marks=pytest.mark.full)])
def test_the_process_died_after_each_step_and_after_each_state(night: Night, expected: Bits) -> None:
    """Between checkpoint and state the update is repeated; half a checkpoint that was left does not matter."""
    for number in range(1, ROUNDS + 1):
        updated = night.update(number)
        new_process()
        (night.checkpoints / "draft").mkdir()
        (night.checkpoints / "draft" / "half.safetensors").write_bytes(b"half")
        with pytest.raises(WrongCheckpointError, match=f"does not hold {updated.checkpoint.name}"):
            night.save(number, updated)
        assert night.update(number).checkpoint == updated.checkpoint
        night.save(number, updated)
        new_process()
    assert night.bits() == expected


def test_a_repeated_update_replaces_a_damaged_checkpoint(night: Night) -> None:
    """As a power cut leaves it before it is durable."""
    updated = night.update(1)
    (updated.checkpoint / LINEAGE).write_text("{}")
    new_process()
    assert night.update(1).checkpoint == updated.checkpoint
    assert digest_folder(updated.checkpoint) == updated.checkpoint.name


def test_another_rounds_state_is_refused(night: Night) -> None:
    """Before any step; nothing is left behind. Damaged ones: tests/models/optim/test_trainer_state.py."""
    night.rounds(last=1)
    predecessor = dataclasses.replace(night.predecessor(2), digest="cafe42")
    new_process()
    before = set(night.checkpoints.iterdir())
    with pytest.raises(StateError, match="belongs to the checkpoint [0-9a-f]{20}, not to cafe42"):
        trainer_process.update(predecessor, night.config, night.rollouts, ADVANTAGES, night.checkpoints)
    assert set(night.checkpoints.iterdir()) == before
    with pytest.raises(WrongCheckpointError):
        trainer_process.save_state(night.current, night.state(2))


def test_a_new_block_begins_with_a_new_optimizer(night: Night) -> None:
    """Even where the trainer holds the weights that it begins with."""
    night.rounds(last=1)
    block = Predecessor(night.checkpoints / night.current, night.current, None)
    arguments = (block, night.config, night.rollouts, ADVANTAGES, night.checkpoints)
    updated = trainer_process.update(*arguments)
    new_process()
    assert trainer_process.update(*arguments).checkpoint == updated.checkpoint


@pytest.mark.parametrize("config", ["adapters"])
def test_a_trainer_that_was_loaded_to_read_is_not_the_one_that_learns(night: Night, expected: Bits) -> None:
    """Log-probabilities are those of a whole checkpoint, without the adapters that the rounds train."""
    grpo = night.config.grpo.model_copy(update={"steps_per_round": 7})
    reader = night.config.model_copy(update={"lora": None, "grpo": grpo})
    trainer_process.logprobs(night.predecessor(1), reader, night.rollouts)
    night.rounds()
    assert night.bits() == expected


def test_retired_folders_go_once_there_is_more(night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while the steps are taken, nor where they fail."""
    night.rounds(last=1)
    old = tmp_path / "old"
    old.mkdir()
    arguments = (night.predecessor(2), night.config, night.rollouts, ADVANTAGES, night.checkpoints, [old])

    def fails(*_: Any) -> None:
        assert old.exists()
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", fails)
        with pytest.raises(OSError, match="no space left"):
            trainer_process.update(*arguments)
    trainer_process.update(*arguments)
    assert not old.exists()
    with pytest.raises(WrongCheckpointError):
        trainer_process.save_state("elsewhere", night.state(2))


def test_a_trainer_that_is_let_go_gives_back_its_memory_at_once(night: Night) -> None:
    """The next one needs it, and the garbage collector may be late."""
    night.rounds(last=1)
    trainer: Any = trainer_process._trainer
    held = [weakref.ref(trainer.model), *(weakref.ref(total) for total in trainer.weights.gradients.values())]
    del trainer
    gc.disable()
    try:
        new_process()
        assert any(reference() is not None for reference in held)
        trainer_process._let_go()
    finally:
        gc.enable()
    assert all(reference() is None for reference in held)


@pytest.mark.parametrize("config", [pytest.param("full", marks=pytest.mark.full), "adapters"])
def test_asking_for_logprobs_changes_no_bit(night: Night, expected: Bits) -> None:
    """And a new process says the same."""
    for number in range(1, ROUNDS + 1):
        held = trainer_process.logprobs(night.predecessor(number), night.config, night.rollouts)
        new_process()
        assert trainer_process.logprobs(night.predecessor(number), night.config, night.rollouts) == held
        night.save(number, night.update(number))
    assert night.bits() == expected
