"""How a student ranks the answers that its owner was shown, against transformers' own log-probabilities."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.ranking import margin
from tasks.reward_model.rank import rank_picks
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tests.models.support.tiny import plain_logprobs, plain_model, trainer_config
from tests.tasks.doubles.tables import run_stage, write_held_out
from tests.tasks.doubles.workers import InProcessWorker

ANSWERS = ["yes", "no, not at all", "perhaps", "a"]


@pytest.fixture(autouse=True)
def _release_the_trainer() -> Iterator[None]:
    yield
    trainer_process._let_go()


def rank(folder: Path, tiny_student: Path, picks: list[tuple[str, list[str], int]]) -> dict[str, Any]:
    found = run_stage(
        rank_picks,
        folder / "rank_picks",
        reward_model=write_held_out(folder, picks),
        policy=tiny_student.name,
        tokenizer=tiny_student,
        student=StudentConfig(),
        config=trainer_config(),
        predecessor=Predecessor(tiny_student, tiny_student.name, None),
        trainer=InProcessWorker(),
    )
    return found.read_json("ranking.json")


def test_a_pick_is_right_if_its_mean_token_logprob_is_the_highest(tmp_path: Path, tiny_student: Path) -> None:
    model, tokenizer = plain_model(tiny_student), load_tokenizer(tiny_student)
    expected, margins, picks = [], [], []
    for number in range(6):
        asked, chosen = f"Shall we {number}?", number % len(ANSWERS)
        prompt = prompt_tokens(tokenizer, [{"role": "user", "content": asked}], StudentConfig())
        means = [float(plain_logprobs(model, prompt, answer_tokens(tokenizer, one)).mean().detach()) for one in ANSWERS]
        expected.append(means.index(max(means)) == chosen)
        margins.append(margin(means, chosen))
        picks.append((asked, ANSWERS, chosen))
    likeliest = [pick for pick, right in zip(picks, expected, strict=True) if right]
    assert 0 < len(likeliest) < len(picks)  # else the test could not tell
    found = rank(tmp_path, tiny_student, picks)
    assert len(set(found.pop("openings"))) == 6
    assert found.pop("margins") == pytest.approx(margins, abs=0.06)  # the trainer computes in bf16
    assert found == {"accuracy": sum(expected) / 6, "right": expected, "generated": [False] * len(expected)}


def test_equal_answers_are_never_right_and_no_picks_have_no_accuracy(tmp_path: Path, tiny_student: Path) -> None:
    assert rank(tmp_path / "1", tiny_student, [("Well?", ["yes", "yes"], 0)])["right"] == [False]
    assert rank(tmp_path / "2", tiny_student, []) == {
        "accuracy": None,
        **{name: [] for name in ("right", "margins", "generated", "openings")},
    }


def test_of_many_picks_the_same_are_drawn(tmp_path: Path, tiny_student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the older half the likelier answer was picked, in the newer half the other."""
    monkeypatch.setattr("tasks.reward_model.rank.MAX_PICKS", 20)
    likely = rank(tmp_path / "one", tiny_student, [("Well?", ["yes", "no, not at all"], 0)])["right"] == [True]
    picks = [("Well?", ["yes", "no, not at all"], int(likely is (number >= 30))) for number in range(60)]
    found = rank(tmp_path / "first", tiny_student, picks)["right"]
    assert len(found) == 20
    assert 5 <= sum(found) <= 15
    assert rank(tmp_path / "again", tiny_student, picks)["right"] == found
