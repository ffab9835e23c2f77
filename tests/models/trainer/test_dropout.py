"""The adapters' dropout: in the training passes of rounds and supervised lessons, and nowhere else."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from conf.schema import LoraConfig, TrainerConfig
from conf.sections.lessons import FeedbackConfig, PicksConfig
from models.grpo import grpo_loss
from models.hf import lora
from models.lessons.preference_data import Pick, RatedAnswer
from models.lessons.sft_preference import dpo, kto
from models.packing.batches import grouped, padded_rows
from models.packing.packing import pack, split
from models.rollout import Rollout
from models.trainer import Trainer
from tests.models.support.tiny import ADVANTAGES, LENGTHS, random_tokens, trainer_config
from tests.models.support.weights import gradients_of_steps, masters_of

EXAMPLES = [(random_tokens(4, 1), random_tokens(3, 2)), (random_tokens(9, 3), random_tokens(5, 4))]
PICKS = [Pick(tuple(prompt), (tuple(answer), tuple(random_tokens(4, 5))), chosen=0) for prompt, answer in EXAMPLES]
JUDGED = [RatedAnswer(prompt, answer, rating=1.0 if len(answer) < 4 else -1.0) for prompt, answer in EXAMPLES]

pytestmark = pytest.mark.usefixtures("exact")


def test_each_checkpoint_has_adapters_and_rounding_thresholds_of_its_own(folder: Path, tmp_path: Path) -> None:
    """So weights that one night's small steps don't change, the next night's may."""
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    first, again, second = (Trainer(each, config_with(0.0)).weights for each in (folder, folder, other))
    adapters = {name: weight for name, weight in first.trained.items() if "lora_A" in name}
    assert adapters
    for name, weight in adapters.items():
        assert weight.equal(again.trained[name])
        assert not weight.equal(second.trained[name])
    assert first.seed == again.seed != second.seed


def config_with(dropout: float, **grpo: Any) -> TrainerConfig:
    grpo = {"sampler_ratio_band": (0.0, 1e9)} | grpo  # the sampler knew nothing of the adapters
    return trainer_config(lora=LoraConfig(rank=4, alpha=8, dropout=dropout), **grpo)


def stirred(folder: Path, config: TrainerConfig) -> Trainer:
    """A trainer whose adapters do something: the same whatever their dropout."""
    trainer = Trainer.load(folder, config)
    chance = torch.Generator().manual_seed(3)
    for adapter in trainer.weights.trained.values():
        adapter.data.copy_(0.2 * torch.randn(adapter.shape, generator=chance))
    return trainer


def gradient(trainer: Trainer, work: Callable[[], Any]) -> Tensor:
    """With which `work` comes to its one optimizer step, as one vector."""
    (found,) = gradients_of_steps(trainer, work)
    return torch.cat([own.flatten() for own in found.values()])


def test_log_probabilities_are_taken_without_it(folder: Path, rollouts: list[Rollout]) -> None:
    """Before a step, after one, and whatever the rate."""
    plain, dropped = stirred(folder, config_with(0.0)), stirred(folder, config_with(0.5))
    expected = plain.logprobs(rollouts)
    assert dropped.logprobs(rollouts) == expected
    dropped.update(rollouts, ADVANTAGES)
    assert dropped.logprobs(rollouts) != expected
    for name, master in masters_of(dropped.weights).items():
        plain.weights.trained[name].data.copy_(master)
    assert dropped.logprobs(rollouts) == plain.logprobs(rollouts)


def test_the_gradient_is_of_the_pass_with_it_over_the_old_policy_without(folder: Path, rollouts: list[Rollout]) -> None:
    """By hand: ratios of log-probabilities with the seed's masks to those that were sampled from."""
    trainer = stirred(folder, config_with(0.5))
    found = gradient(trainer, lambda: trainer.update(rollouts, ADVANTAGES))

    twin = stirred(folder, config_with(0.5))
    (batch,) = split(grouped(rollouts, range(len(rollouts))), twin.config.microbatch_tokens)
    packed = pack(batch, twin.device)
    own = [rollouts[row] for row in packed.rows]
    old = padded_rows(twin.token_logprobs(twin.model, packed)[0].detach(), packed)
    with twin._drawing("step 0"), lora.dropout(twin.model, on=True):
        policy = padded_rows(twin.token_logprobs(twin.model, packed)[0], packed)
    tokens = sum(map(sum, LENGTHS))
    loss, _ = grpo_loss(
        policy,
        old,
        torch.tensor([ADVANTAGES[row] for row in packed.rows]),
        torch.tensor([[place < len(r.token_ids) for place in range(7)] for r in own]),
        config=twin.config.grpo,
        denominator=tokens,
        sampler_logprobs=torch.nn.utils.rnn.pad_sequence([torch.tensor(r.sampler_logprobs) for r in own], True),
    )
    loss.backward()
    expected = gradient(twin, lambda: twin.weights.step())
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)
    assert ((policy - old).abs() > 0.05).any()  # the masks matter


def test_a_lesson_has_it_too(folder: Path) -> None:
    plain, dropped = stirred(folder, config_with(0.0)), stirred(folder, config_with(0.5))
    torch.manual_seed(1)
    without, first = (gradient(trainer, lambda t=trainer: t.imitate(EXAMPLES)) for trainer in (plain, dropped))
    assert not torch.allclose(without, first, atol=1e-3)
    again = stirred(folder, config_with(0.5))
    assert gradient(again, lambda: again.imitate(EXAMPLES)).equal(first)
    assert torch.rand(3).equal(torch.rand(3, generator=torch.Generator().manual_seed(1)))  # the process draws its own


@pytest.mark.parametrize(
    "lesson",
    [
        lambda trainer: dpo(trainer, PICKS, PicksConfig(epochs=1), seed=1),
        lambda trainer: kto(trainer, JUDGED, FeedbackConfig(), seed=1),
    ],
    ids=["dpo", "kto"],
)
def test_preference_lessons_have_none(folder: Path, lesson: Callable[[Trainer], Any]) -> None:
    """Their loss joins whole answers, whose derivatives are taken without dropout."""
    plain, dropped = stirred(folder, config_with(0.0)), stirred(folder, config_with(0.5))
    expected, found = (gradient(trainer, lambda t=trainer: list(lesson(t))) for trainer in (plain, dropped))
    assert found.equal(expected)
    assert found.any()
