"""Students trained from scratch: their texts, and a pretraining that goes on where it was interrupted."""

from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from conf.load import STARTER, load_night
from conf.schema import StudentConfig
from conf.storage.home import InputError
from models.hf.bridge import Bridge
from models.hf.loading import load_tokenizer
from rewards.arithmetic import Arithmetic
from rewards.data.dataset_rows import DATA_VARIABLE
from tasks.pretraining import pretrain as module
from tasks.pretraining.new_model import SIZES, new_model, new_tokenizer
from tasks.pretraining.pretrain import LENGTH, pretrain, rate_factor
from tasks.pretraining.texts import texts

STEPS = 4


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> int:
    """Small batches, no data but the generated, and a state after each step. Returns the tokens of `STEPS` steps."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "SAVED_EVERY", -1.0)
    monkeypatch.setattr(module, "TOKENS_A_TEXT", 4)
    return STEPS * 2 * LENGTH


@pytest.mark.slow
def test_an_interrupted_pretraining_goes_on_with_the_same_bits(tmp_path: Path, quick: int) -> None:
    whole = list(pretrain(tmp_path / "whole", "1M", quick))
    assert [figures["step"] for figures in whole] == [*range(1, STEPS + 1)]
    assert whole[-1]["loss"] < whole[0]["loss"] < 8  # log(2048) = 7.6 nats
    cut = pretrain(tmp_path / "cut", "1M", quick)
    begun = list(islice(cut, 3))  # the third step is not saved
    cut.close()
    rest = list(pretrain(tmp_path / "cut", "1M", quick))
    assert [figures["step"] for figures in rest] == [3, 4]
    assert [figures["loss"] for figures in begun[:2] + rest] == [figures["loss"] for figures in whole]
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert all(first[name].equal(second[name]) for name in first)
    assert len((tmp_path / "cut" / "curve.jsonl").read_text().splitlines()) == STEPS
    assert list(pretrain(tmp_path / "whole", "1M", quick)) == []
    with pytest.raises(InputError, match="made with seed 1, not 2"):
        list(pretrain(tmp_path / "whole", "1M", quick, seed=2))
    tokenizer = load_tokenizer(tmp_path / "whole")
    text = "Anna has 12 apples – größer, 学校\n"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    Bridge(tokenizer, StudentConfig(system=""))  # its template can continue a conversation


def test_no_exam_problem_is_read(quick: int) -> None:
    read = "\n".join(texts("1", 20_000))
    assert not [problem for problem in Arithmetic().problems("test") if f"{problem.question}\n" in read]


@pytest.mark.parametrize("size", SIZES)
def test_a_size_has_about_as_many_weights_and_runs(size: str) -> None:
    model = new_model(size, new_tokenizer(["a text"]), 1)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(float(size[:-1]), rel=0.06)
    assert model(input_ids=torch.tensor([[1, 2]])).logits.isfinite().all()


def test_the_rate_rises_stays_and_falls() -> None:
    factors = [rate_factor(step, 100) for step in range(100)]
    assert factors[4:60] == [1.0] * 56
    assert factors[0] < factors[3] < 1 > factors[61] > factors[99] > 0


def test_a_size_that_is_not_offered() -> None:
    assert load_night(STARTER, ["student.source={new: 5M}"]).student.source == "new:5M"
    with pytest.raises(InputError, match="no new student of 7M; choose from 1M, 5M, 15M, 49M"):
        load_night(STARTER, ["student.source={new: 7M}"])
