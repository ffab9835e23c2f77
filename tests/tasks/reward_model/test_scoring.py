"""The owner's groups are scored by the reward model, or ranked by a judge: a real endpoint, which must prove itself."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from conf.schema import TrainerConfig
from conf.sections.lessons import EndpointConfig
from tasks.reward_model import process
from tasks.reward_model.learned_reward import OWNER
from tasks.reward_model.scoring import examine_judge, figures, rank_by_judge, score_by_reward_model
from tasks.tables import LEARNED, PROMPTS, ROLLOUTS, read_table
from tests.models.support.chat_server import Reply, chat_server, said
from tests.tasks.doubles.tables import messages, prompt, rollout, run_stage, write_held_out, write_stage
from tests.tasks.reward_model.test_judge import SHOWN

DATE = "2026-11-20"
OWNERS = {"kind": OWNER, "benchmark": None, "truth": None, "level": None, "entry": None}  # an owner's prompt
Judge = Callable[[dict[str, Any]], Reply]


def by(key: Callable[[str], Any]) -> Judge:
    """Return a judge that puts the answers with the highest key first."""

    def answer(request: dict[str, Any]) -> Reply:
        shown = SHOWN.findall(request["messages"][-1]["content"])
        ranked = sorted(shown, key=lambda each: key(each[1]), reverse=True)
        return said("Here it is: " + json.dumps({"ranking": [[name] for name, _ in ranked]}))

    return answer


IN_PLACE = by(lambda answer: 0)  # as they are shown


def examined(tmp_path: Path, judge: Judge, picks: int = 40, **changes: Any) -> dict[str, Any]:
    """Examine a judge on picks of an owner who always picks the shortest of four answers."""
    answers = ["a word", "two more words", "one", "a much longer answer"]
    with chat_server(judge) as server:
        done = run_stage(
            examine_judge,
            tmp_path / "examine_judge",
            reward_model=write_held_out(tmp_path, [(f"Say {n}.", answers, 2) for n in range(picks)]),
            endpoint=EndpointConfig(base_url=server.url, model="wise", **changes),
            picks=100,
            date=DATE,
            cache=tmp_path / "teacher",
            until=math.inf,
        )
    return done.read_json("outcome.json")


def test_a_judge_with_the_owners_taste_serves(tmp_path: Path) -> None:
    outcome = examined(tmp_path, by(lambda answer: -len(answer)), picks=12)
    assert outcome["serves"]
    assert outcome["accuracy"]["value"] == 1.0
    assert (outcome["chance"], outcome["judged"], outcome["order_flips"]) == (0.25, 12, 0.0)
    assert figures(outcome)["judge/accuracy"] == 1.0
    assert outcome["asked"] == 12 * 3


@pytest.mark.parametrize(
    ("judge", "judged", "flips"),
    [
        pytest.param(by(len), 40, 0.0, id="the longest first"),
        pytest.param(IN_PLACE, 0, 5 / 6, id="the first first"),
        pytest.param(lambda request: said("They are all good."), 0, None, id="no ranking"),
        pytest.param(lambda request: Reply(b"", 500), 0, None, id="an error"),
    ],
)
def test_a_bad_judge_is_refused(tmp_path: Path, judge: Judge, judged: int, flips: float | None) -> None:
    outcome = examined(tmp_path, judge)
    assert not outcome["serves"]
    assert outcome["judged"] == judged
    assert outcome["order_flips"] == (None if flips is None else pytest.approx(flips, abs=0.1))
    if not judged:
        assert outcome["accuracy"]["value"] == 0.25  # what it does not judge is a guess


def test_without_held_out_picks_nothing_serves(tmp_path: Path) -> None:
    outcome = examined(tmp_path, IN_PLACE, picks=0)
    assert not outcome["serves"]
    assert outcome["asked"] == 0


def test_a_spent_budget_is_said(tmp_path: Path) -> None:
    outcome = examined(tmp_path, by(len), budget_tokens=100)
    assert "budget of 100 tokens" in outcome["stopped"]
    assert outcome["judged"] < 40


def test_completions_of_the_owners_prompts_are_ranked(tmp_path: Path) -> None:
    asked = [row | {"messages": messages("Say.")} for row in (prompt("sum", 0), prompt("own", 1) | OWNERS)]
    answers = [("sum", 0, "12"), ("sum", 0, "the answer is 12"), ("own", 1, "a"), ("own", 1, "abc"), ("own", 1, "a")]
    rows = [rollout(name, group, number, text) for number, (name, group, text) in enumerate(answers)]
    prompts = write_stage(tmp_path / "select_prompts", {"prompts": (PROMPTS, asked)})
    rollouts = write_stage(tmp_path / "sample", {"rollouts": (ROLLOUTS, rows)})
    with chat_server(by(len)) as server:
        ranked = run_stage(
            rank_by_judge,
            tmp_path / "rank_by_judge",
            prompts=prompts,
            rollouts=rollouts,
            endpoint=EndpointConfig(base_url=server.url, model="wise"),
            date=DATE,
            cache=tmp_path / "teacher",
            until=math.inf,
        )
    learned = read_table(ranked.folder / "learned.parquet", LEARNED).learned.tolist()
    assert learned[2:] == [0.0, 1.0, 0.0]
    assert all(map(math.isnan, learned[:2]))
    judged = ranked.read_json("judged.json")
    assert (judged["groups"], judged["asked"]) == (1, 3)


class CountingTrainer:
    """In place of the trainer's process: an answer's reward is the number of its tokens; NaN with token 33."""

    def __init__(self) -> None:
        self.asked: Any = None

    def call(self, function: Any, checkpoint: Path, groups: Any, config: TrainerConfig) -> list[list[float]]:
        assert function is process.score_answers
        self.asked = checkpoint, groups, config
        return [[float("nan") if 33 in answer else float(len(answer)) for answer in answers] for _, answers in groups]


def judged(home: Path, rows: list[dict[str, Any]], trainer: Any, *, failed: bool) -> pd.DataFrame:
    asked = [prompt("a", 0) | OWNERS, prompt("b", 1) | OWNERS, prompt("sum", 2)]
    prompts = write_stage(home / "select_prompts", {"prompts": (PROMPTS, asked)})
    sampled = write_stage(home / "sample", {"rollouts": (ROLLOUTS, rows)})
    scored = run_stage(
        score_by_reward_model,
        home / "score_by_reward_model",
        prompts=prompts,
        rollouts=sampled,
        reward_model=Path("cafe"),
        config=TrainerConfig(),
        failed=failed,
        trainer=trainer,
    )
    return read_table(scored.folder / "learned.parquet", LEARNED)


def test_groups_are_judged_together_and_rows_keep_their_order(tmp_path: Path) -> None:
    rows = [
        rollout("a", 0, 0, "xx"),
        rollout("b", 1, 0, "xxx"),
        rollout("a", 0, 1, "!"),  # token 33
        rollout("b", 1, 1, ""),  # without a token
        rollout("a", 0, 2, "x"),
        rollout("sum", 2, 0, "xx"),  # not the owner's
    ]
    trainer: Any = CountingTrainer()
    table = judged(tmp_path, rows, trainer, failed=False)
    assert table.problem_id.tolist() == ["a", "b", "a", "b", "a", "sum"]
    assert table["sample"].tolist() == [0, 0, 1, 1, 2, 0]
    assert [None if pd.isna(one) else one for one in table.learned] == [2.0, 3.0, None, None, 1.0, None]
    assert trainer.asked == (
        Path("cafe"),
        [([1, 2, 3], [[120, 120], [33], [120]]), ([1, 2, 3], [[120] * 3])],
        TrainerConfig(),
    )


def test_a_model_that_failed_is_not_asked_again(tmp_path: Path) -> None:
    rows = [rollout("a", 0, 0, "xx"), rollout("a", 0, 1, "x")]
    called: list[Any] = []
    trainer: Any = SimpleNamespace(call=called.append)
    table = judged(tmp_path, rows, trainer, failed=True)
    assert called == [process.release]
    assert table.learned.isna().tolist() == [True, True]
