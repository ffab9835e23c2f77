"""The trainer's process: whatever fails after a step, and however often it is asked again, no step is taken twice.

Every night here is disturbed in another way and compared, to the last bit, with three rounds that nothing disturbed.
"""

import dataclasses
import gc
import json
import resource
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from conf.schema import LoraConfig, TrainerConfig
from models.checkpoint import LINEAGE, digest_folder
from models.optim.trainer_state import NOTE, TENSORS, StateError
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.training import trainer_process
from tasks.training.trainer_process import ElsewhereError, Predecessor, Updated
from tests.models.support.tiny import sampled_groups, trainer_config, write_tiny

ROUNDS = 3
ADVANTAGES = [1.0, -0.5, -0.5, 0.7, -0.7, 0.25, -0.25]
ADAPTERS = LoraConfig(rank=4, alpha=8, dropout=0.3)
CONFIGS = {
    "full": trainer_config(microbatch_tokens=20, steps_per_round=2),
    "kl": trainer_config(kl_coefficient=0.1),
    "adapters": trainer_config(microbatch_tokens=20, steps_per_round=2, lora=ADAPTERS),
}

Bits = list[tuple[str, str]]  # of every round: the checkpoint's digest, and that of the state's tensors


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="module")
def rollouts(student: Path) -> list[Rollout]:
    return sampled_groups(student, [[4, 1, 6], [2, 5], [7, 3]])


class Night:
    """The rounds of one night, without anything but their updates."""

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
        """One round's update, each with advantages of its own."""
        advantages = [*ADVANTAGES[number:], *ADVANTAGES[:number]]
        own = (self.rollouts, advantages, self.checkpoints)
        return trainer_process.update(self.predecessor(number), self.config, *own)

    def save(self, number: int, updated: Updated) -> None:
        trainer_process.save_state(updated.checkpoint.name, self.state(number))
        self.current = updated.checkpoint.name

    def rounds(self, first: int = 1, last: int = ROUNDS) -> None:
        for number in range(first, last + 1):
            self.save(number, self.update(number))

    def bits(self) -> Bits:
        notes = [json.loads((self.state(number) / NOTE).read_text()) for number in range(1, ROUNDS + 1)]
        for number, note in enumerate(notes, 1):
            assert note["step"] == number * self.config.grpo.steps_per_round
        return [(note["checkpoint"], note["tensors"]) for note in notes]


def new_process() -> None:
    """What the learner knows after its process died: nothing."""
    trainer_process._trainer, trainer_process._held = None, None


@pytest.fixture(autouse=True)
def _left_as_it_was() -> Iterator[None]:
    yield
    new_process()


@pytest.fixture(scope="module", params=CONFIGS)
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, student: Path, rollouts: list[Rollout]
) -> tuple[TrainerConfig, Bits]:
    config = CONFIGS[request.param]
    night = Night(tmp_path_factory.mktemp("undisturbed"), student, config, rollouts)
    night.rounds()
    return config, night.bits()


@pytest.fixture
def expected(undisturbed: tuple[TrainerConfig, Bits]) -> Bits:
    return undisturbed[1]


@pytest.fixture
def night(tmp_path: Path, student: Path, undisturbed: tuple[TrainerConfig, Bits], rollouts: list[Rollout]) -> Night:
    return Night(tmp_path, student, undisturbed[0], rollouts)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """No file of this process grows beyond 4 kB: what no privilege is exempt from."""
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


OBSTACLES = [full_disk, file_in_the_way]
Obstacle = Callable[[Path], AbstractContextManager[None]]


def test_no_round_is_settled(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """What sits the exam is what was sampled from: the nearest weights. The remainders are steps that nobody tried."""
    at: list[int] = []
    monkeypatch.setattr(Trainer, "round_stochastically", lambda trainer: at.append(trainer.step))
    night.rounds()
    assert at == []


def test_the_rounds_differ(expected: Bits) -> None:
    assert len({checkpoint for checkpoint, _ in expected}) == len({state for _, state in expected}) == ROUNDS


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("number", [1, 2])
def test_the_checkpoint_cannot_be_written(night: Night, expected: Bits, obstacle: Obstacle, number: int) -> None:
    night.rounds(last=number - 1)
    with obstacle(night.checkpoints / "draft"), pytest.raises((OSError, SafetensorError)):
        night.update(number)
    with pytest.raises(ElsewhereError):  # what has no checkpoint has no state either
        trainer_process.save_state(expected[number - 1][0], night.state(number))
    night.rounds(first=number)
    assert night.bits() == expected


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_the_state_cannot_be_written(night: Night, expected: Bits, obstacle: Obstacle) -> None:
    night.rounds(last=1)
    updated = night.update(2)
    for _ in range(2):
        with obstacle(night.state(2)), pytest.raises((OSError, SafetensorError)):
            night.save(2, updated)
    night.save(2, updated)
    night.rounds(first=3)
    assert night.bits() == expected


@pytest.mark.parametrize("died", [False, True], ids=["same process", "new process"])
def test_the_answer_was_lost(night: Night, expected: Bits, died: bool) -> None:
    """The update is asked for again from the same predecessor, which the trainer has left by then."""
    for number in range(1, ROUNDS + 1):
        updated = night.update(number)
        if died:
            new_process()
        assert night.update(number).checkpoint == updated.checkpoint
        night.save(number, updated)
    assert night.bits() == expected


def test_the_process_died_after_each_step_and_after_each_state(night: Night, expected: Bits) -> None:
    """Between checkpoint and state the update is taken again; a half checkpoint that lies about does not matter."""
    for number in range(1, ROUNDS + 1):
        updated = night.update(number)
        new_process()
        (night.checkpoints / "draft").mkdir()
        (night.checkpoints / "draft" / "half.safetensors").write_bytes(b"half")
        with pytest.raises(ElsewhereError, match=f"does not hold {updated.checkpoint.name}"):
            night.save(number, updated)
        assert night.update(number).checkpoint == updated.checkpoint
        night.save(number, updated)
        new_process()
    assert night.bits() == expected


def test_a_checkpoint_that_was_lost_meanwhile_is_made_again(night: Night, expected: Bits) -> None:
    updated = night.update(1)
    (updated.checkpoint / LINEAGE).write_text("{}")
    new_process()
    assert night.update(1).checkpoint == updated.checkpoint
    assert digest_folder(updated.checkpoint) == updated.checkpoint.name
    night.save(1, updated)
    night.rounds(first=2)
    assert night.bits() == expected


def damaged(night: Night) -> Predecessor:
    content = bytearray((night.state(1) / TENSORS).read_bytes())
    content[-1] ^= 1
    (night.state(1) / TENSORS).write_bytes(content)
    return night.predecessor(2)


def missing(night: Night) -> Predecessor:
    return dataclasses.replace(night.predecessor(2), state=night.state(7))


def of_another_round(night: Night) -> Predecessor:
    return dataclasses.replace(night.predecessor(2), digest="cafe42")


REFUSED: list[tuple[Callable[[Night], Predecessor], str]] = [
    (damaged, "the trainer state is damaged"),
    (missing, "no complete trainer state"),
    (of_another_round, "belongs to the checkpoint [0-9a-f]{20}, not to cafe42"),
]


@pytest.mark.parametrize(("wrong", "line"), REFUSED, ids=[wrong.__name__ for wrong, _ in REFUSED])
@pytest.mark.parametrize("undisturbed", ["full"], indirect=True)
def test_a_state_that_is_not_the_predecessors_is_refused(
    night: Night, wrong: Callable[[Night], Predecessor], line: str
) -> None:
    """Before any step; nothing is left behind."""
    night.rounds(last=1)
    predecessor = wrong(night)
    new_process()
    before = set(night.checkpoints.iterdir())
    with pytest.raises(StateError, match=line):
        trainer_process.update(predecessor, night.config, night.rollouts, ADVANTAGES, night.checkpoints)
    assert set(night.checkpoints.iterdir()) == before
    with pytest.raises(ElsewhereError):
        trainer_process.save_state(night.current, night.state(2))


@pytest.mark.parametrize("undisturbed", ["full"], indirect=True)
def test_a_trainer_that_stands_elsewhere_is_loaded_anew(night: Night, expected: Bits, tmp_path: Path) -> None:
    """Back to the first round from the last, as after a checkpoint stage that was damaged."""
    night.rounds()
    trainer: Any = trainer_process._trainer
    night.current = expected[0][0]
    night.rounds(first=2)
    assert trainer_process._trainer is not trainer
    assert night.bits() == expected


def test_a_trainer_that_was_loaded_to_read_is_not_the_one_that_learns(night: Night, expected: Bits) -> None:
    """Log-probabilities are read of a whole checkpoint, without the adapters that the rounds then train."""
    grpo = night.config.grpo.model_copy(update={"steps_per_round": 7})
    reader = night.config.model_copy(update={"lora": None, "grpo": grpo})
    trainer_process.logprobs(night.predecessor(1), reader, night.rollouts)
    night.rounds()
    assert night.bits() == expected


def test_what_is_retired_goes_once_there_is_something_to_write(
    tmp_path: Path, student: Path, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not before: neither while the steps are taken, nor where they fail."""
    night = Night(tmp_path, student, CONFIGS["full"], rollouts)
    night.rounds(last=1)
    old = [tmp_path / "old checkpoint", tmp_path / "old state"]
    for folder in old:
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "file").write_text("old")
    trainer: Any = trainer_process._trainer
    take, save = trainer.update, trainer.save_state
    seen: list[list[bool]] = []

    def watched(work: Any) -> Any:
        def noting(*arguments: Any) -> Any:
            seen.append([folder.exists() for folder in old])
            return work(*arguments)

        return noting

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    asked = (night.predecessor(2), night.config, rollouts, ADVANTAGES, night.checkpoints, old[:1])
    monkeypatch.setattr(trainer, "update", fails)
    with pytest.raises(OSError, match="no space left"):
        trainer_process.update(*asked)
    trainer_process._held = night.current
    monkeypatch.setattr(trainer, "update", watched(take))
    monkeypatch.setattr(trainer, "save_state", watched(save))
    updated = trainer_process.update(*asked)
    assert not old[0].exists()
    with pytest.raises(ElsewhereError):
        trainer_process.save_state("elsewhere", night.state(2), old[1:])
    trainer_process.save_state(updated.checkpoint.name, night.state(2), old[1:])
    assert seen == [[True, True], [False, False]]
    assert (night.state(2) / NOTE).exists()


def test_a_trainer_that_is_let_go_gives_back_its_memory(tmp_path: Path, student: Path, rollouts: list[Rollout]) -> None:
    """At once, not when the collector happens to come by: the next one needs it."""
    Night(tmp_path, student, CONFIGS["full"], rollouts).rounds(last=1)
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


def test_asking_for_logprobs_changes_no_bit_and_a_new_process_says_the_same(
    tmp_path: Path, student: Path, rollouts: list[Rollout], undisturbed: tuple[TrainerConfig, Bits]
) -> None:
    config, expected = undisturbed
    night = Night(tmp_path, student, config, rollouts)
    for number in range(1, ROUNDS + 1):
        held = trainer_process.logprobs(night.predecessor(number), config, rollouts)
        new_process()
        assert trainer_process.logprobs(night.predecessor(number), config, rollouts) == held
        night.save(number, night.update(number))
    assert night.bits() == expected
