"""With `lora.keep` every checkpoint is an adapter of the first student, and whoever reads it reads a whole model."""

from pathlib import Path

import pytest
import torch

from conf.schema import LoraConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from conf.storage.home import Home
from flows.serving.vllm_server import delete_other_merged, whole_model
from models.engine.sync_probe import read_probe
from models.hf.checkpoint import base_of, is_adapter, keep, parent_of
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model, load_tokenizer
from models.hf.merging import file_logprobs
from models.optim.trainer_state import StateError
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tests.models.support.tiny import sampled_groups, trainer_config, write_tiny

KEPT = LoraConfig(rank=4, alpha=8, keep=True)
LESSON = DistillConfig(steps=3, batch_size=4, max_epochs=9, learning_rate=0.01)


@pytest.fixture(scope="module")
def config() -> TrainerConfig:
    return trainer_config(learning_rate=0.01, lora=KEPT)


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    return keep(write_tiny(folder / "draft"), folder)


@pytest.fixture(scope="module")
def rollouts(student: Path) -> list[Rollout]:
    return sampled_groups(student, [[4, 1, 6], [2, 5]])


@pytest.fixture(scope="module")
def chain(
    student: Path, rollouts: list[Rollout], config: TrainerConfig, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """The student, a lesson's checkpoint, another's, and a round's."""
    checkpoints, examples = student.parent, [(one.prompt_token_ids, one.token_ids) for one in rollouts]
    first, _ = trainer_process.lesson(student, config, LESSON, examples, checkpoints)
    second, _ = trainer_process.lesson(first, config, LESSON, examples[::-1], checkpoints)
    advantages = [1.0, -0.5, -0.5, 0.7, -0.7]
    before = Predecessor(second, second.name, None)
    updated = trainer_process.update(before, config, rollouts, advantages, checkpoints).checkpoint
    trainer_process.save_state(updated.name, tmp_path_factory.mktemp("state") / "one")
    return [student, first, second, updated]


def test_each_is_an_adapter_of_the_first_student(chain: list[Path]) -> None:
    student, first, second, *_ = chain
    assert not is_adapter(student)
    assert [base_of(each) for each in chain] == [student] * 4
    assert [parent_of(each) for each in chain[1:]] == [student.name, first.name, second.name]
    assert len({each.name for each in chain}) == 4


def test_a_trainer_goes_on_where_an_adapter_ended(chain: list[Path], config: TrainerConfig) -> None:
    for checkpoint in chain[1:]:
        probe = read_probe(checkpoint)
        assert probe is not None
        assert probe.difference(file_logprobs(checkpoint, probe.token_ids)) < 0.05  # nats, by transformers and peft
        held = Trainer.load(checkpoint, config)._probe()
        assert probe.difference(held.logprobs) <= (0.05 if checkpoint == chain[-1] else 0)


def test_who_reads_an_adapter_reads_a_whole_model(chain: list[Path]) -> None:
    student, first, *_ = chain
    assert load_tokenizer(first).get_vocab() == load_tokenizer(student).get_vocab()
    device = torch.device("cpu")
    merged = load_model(first, compute_dtype(device), device)
    assert merged.state_dict().keys() == load_model(student, compute_dtype(device), device).state_dict().keys()
    probe = read_probe(first)
    assert probe is not None
    ids = torch.tensor([probe.token_ids])
    logits = merged(input_ids=ids, use_cache=False).logits[0, :-1].float().log_softmax(dim=-1)
    found = logits.gather(1, ids[0, 1:, None]).squeeze(1).tolist()
    assert probe.difference(found) < 0.05


def test_a_merged_copy_leaves_those_in_use(chain: list[Path], tmp_path: Path) -> None:
    home = Home(tmp_path)
    (used := tmp_path / "merged" / "used").mkdir(parents=True)
    whole = whole_model(chain[1], home, trust_remote_code=False)
    assert (whole.name, is_adapter(whole)) == (chain[1].name, False)
    assert {*whole.parent.iterdir()} == {used, whole}
    delete_other_merged(home, whole)
    assert [*whole.parent.iterdir()] == [whole]


def test_another_rank_is_refused(chain: list[Path]) -> None:
    other = trainer_config(lora=KEPT.model_copy(update={"rank": 8}))
    with pytest.raises(StateError, match="rank"):
        Trainer.load(chain[1], other)
