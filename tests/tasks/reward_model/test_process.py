"""In the trainer's process: a taste is learnt and kept, shuffled picks are not, and what was judged is what serves."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from models.checkpoint import is_whole, parent_of
from models.lessons.ranking import rank
from models.reward_model import HEAD, RewardModel
from tasks.reward_model import process
from tasks.reward_model.process import Fitted, fit_reward_model, judge
from tests.models.tiny import trainer_config, write_tiny
from tests.models.tiny_picks import QUICK, tiny_picks

TRAINER = trainer_config()
HELD_OUT = tiny_picks(60, seed=2)


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def fitted(student: Path, checkpoints: Path) -> Fitted:
    config = QUICK.model_copy(update={"learning_curve": (0.1, 0.5)})
    return fit_reward_model(student, "cafe42", tiny_picks(120, seed=1), HELD_OUT, config, TRAINER, 1, checkpoints)


def asked() -> list[tuple[list[int], list[list[int]]]]:
    return [(list(pick.prompt), [list(answer) for answer in pick.answers]) for pick in HELD_OUT]


def test_a_taste_is_learnt_and_kept_with_its_lineage(fitted: Fitted, checkpoints: Path) -> None:
    assert fitted.ranking.accuracy.value > 0.8
    assert fitted.checkpoint is not None
    assert fitted.checkpoint.parent == checkpoints
    assert is_whole(fitted.checkpoint)
    assert parent_of(fitted.checkpoint) == "cafe42"
    assert (fitted.checkpoint / HEAD).exists()
    assert not (checkpoints / "draft").exists()


def test_more_picks_teach_more(fitted: Fitted) -> None:
    assert [count for count, _ in fitted.learning_curve] == [12, 60, 120]
    assert fitted.learning_curve[-1][1] == fitted.ranking.accuracy
    assert fitted.learning_curve[0][1].value < fitted.ranking.accuracy.value


def test_what_serves_is_what_was_judged(fitted: Fitted) -> None:
    assert fitted.checkpoint is not None
    rewards = judge(fitted.checkpoint, asked(), TRAINER)
    assert rank(rewards, HELD_OUT) == fitted.ranking


def test_the_judge_stays_loaded_and_says_the_same(
    fitted: Fitted, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fitted.checkpoint is not None
    first = judge(fitted.checkpoint, asked(), TRAINER)
    loads = []
    load = RewardModel.load
    monkeypatch.setattr(RewardModel, "load", lambda *given: loads.append(given) or load(*given))
    assert judge(fitted.checkpoint, asked(), TRAINER) == first
    assert loads == []
    process.let_go()  # another process
    assert judge(fitted.checkpoint, asked(), TRAINER) == first
    assert len(loads) == 1


@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_rewards_come_in_the_order_of_the_answers(fitted: Fitted, budget: int) -> None:
    assert fitted.checkpoint is not None
    groups = asked()[:5]
    whole = judge(fitted.checkpoint, groups, TRAINER)
    turned = judge(fitted.checkpoint, [(p, a[::-1]) for p, a in groups[::-1]], trainer_config(microbatch_tokens=budget))
    for found, wanted in zip(turned[::-1], whole, strict=True):
        assert found[::-1] == pytest.approx(wanted, abs=0.2)  # bf16 rounds other shapes otherwise


def test_shuffled_picks_are_refused_and_nothing_is_kept(student: Path, tmp_path: Path) -> None:
    """Twenty fixed seeds; a true 95 % interval lets one in forty through."""
    quick, refused = QUICK.model_copy(update={"epochs": 1}), 0
    for seed in range(20):
        chance = random.Random(seed)
        shuffled = [replace(p, chosen=chance.randrange(5)) for p in tiny_picks(140, seed=100 + seed)]
        fitted = fit_reward_model(student, None, shuffled[:80], shuffled[80:], quick, TRAINER, seed, tmp_path)
        refused += fitted.ranking.refusal is not None
        assert (fitted.checkpoint is None) == (fitted.ranking.refusal is not None)
    assert refused >= 18
    assert len(list(tmp_path.iterdir())) == 20 - refused
