"""How a student ranks the answers that its owner was shown, beside transformers' own log-probabilities."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from tasks.reward_model.rank import rank_picks
from tasks.tables import HELD_OUT
from tasks.training import trainer_process
from tasks.training.trainer_process import Predecessor
from tests.models.tiny import plain_logprobs, plain_model, trainer_config, write_tiny
from tests.tasks.doubles.tables import write_stage

ANSWERS = ["yes", "no, not at all", "perhaps", "a"]


class InProcess:
    """The trainer's worker, without a process."""

    def call(self, function: Any, *arguments: Any) -> Any:
        return function(*arguments)


@pytest.fixture
def student(tmp_path: Path) -> Iterator[Path]:
    yield write_tiny(tmp_path / "student")
    trainer_process._let_go()


def rank(folder: Path, student: Path, picks: list[tuple[str, list[str], int]]) -> dict[str, Any]:
    rows = [
        {"messages": json.dumps([{"role": "user", "content": asked}]), "responses": json.dumps(answers), "chosen": n}
        for asked, answers, n in picks
    ]
    fit = write_stage(folder / "fit_reward_model", {"held_out": (HELD_OUT, rows)})
    (folder / "rank_picks").mkdir()
    trainer: Any = InProcess()
    rank_picks.write(
        folder / "rank_picks",
        reward_model=fit,
        policy=student.name,
        tokenizer=student,
        student=StudentConfig(),
        config=trainer_config(),
        predecessor=Predecessor(student, student.name, None),
        trainer=trainer,
    )
    return json.loads((folder / "rank_picks" / "ranking.json").read_text())


def test_right_where_the_picked_answer_is_the_likeliest_a_token(tmp_path: Path, student: Path) -> None:
    model, tokenizer = plain_model(student), load_tokenizer(student)
    expected, picks = [], []
    for number in range(6):
        asked, chosen = f"Shall we {number}?", number % len(ANSWERS)
        prompt = prompt_tokens(tokenizer, [{"role": "user", "content": asked}], StudentConfig())
        means = [float(plain_logprobs(model, prompt, answer_tokens(tokenizer, one)).mean().detach()) for one in ANSWERS]
        expected.append(means.index(max(means)) == chosen)
        picks.append((asked, ANSWERS, chosen))
    likeliest = [pick for pick, right in zip(picks, expected, strict=True) if right]
    assert 0 < len(likeliest) < len(picks)  # else the test could not tell
    found = rank(tmp_path, student, picks)
    assert found == {"accuracy": sum(expected) / 6, "right": expected}


def test_answers_alike_are_no_ranking_and_no_picks_no_accuracy(tmp_path: Path, student: Path) -> None:
    assert rank(tmp_path / "1", student, [("Well?", ["yes", "yes"], 0)])["right"] == [False]
    assert rank(tmp_path / "2", student, []) == {"accuracy": None, "right": []}


def test_of_many_picks_a_draw_is_ranked_the_same_every_time_the_newest_among_them(
    tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older half is picked the likelier answer of, the newer half the other."""
    monkeypatch.setattr("tasks.reward_model.rank.MOST", 20)
    likely = rank(tmp_path / "one", student, [("Well?", ["yes", "no, not at all"], 0)])["right"] == [True]
    picks = [("Well?", ["yes", "no, not at all"], int(likely is (number >= 30))) for number in range(60)]
    found = rank(tmp_path / "first", student, picks)["right"]
    assert len(found) == 20
    assert 5 <= sum(found) <= 15
    assert rank(tmp_path / "again", student, picks)["right"] == found
