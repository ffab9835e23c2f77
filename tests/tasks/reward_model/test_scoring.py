"""The judge's two stages against a real endpoint: it has to prove itself, and what it does not rank has no score."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.sections.lessons import EndpointConfig
from tasks.reward_model.learned_reward import OWNER
from tasks.reward_model.scoring import examine_judge, figures, rank_by_judge
from tasks.tables import LEARNED, PROMPTS, ROLLOUTS, read_table
from tests.models.support.chat_server import Reply, chat_server, said
from tests.tasks.doubles.tables import prompt, rollout, run_stage, write_held_out, write_stage

SHOWN = re.compile(r'<answer id="(.+?)">(.*?)</answer>', re.DOTALL)
DATE = "2026-11-20"
Judge = Callable[[dict[str, Any]], Reply]


def by(key: Callable[[str], Any]) -> Judge:
    """Return a judge that puts the answers with the highest key first."""

    def answer(request: dict[str, Any]) -> Reply:
        shown = SHOWN.findall(request["messages"][-1]["content"])
        ranked = sorted(shown, key=lambda each: key(each[1]), reverse=True)
        return said("Here it is: " + json.dumps({"ranking": [[name] for name, _ in ranked]}))

    return answer


def in_place(request: dict[str, Any]) -> Reply:
    """Rank the answers as they are shown."""
    return said(json.dumps({"ranking": [[name] for name, _ in SHOWN.findall(request["messages"][-1]["content"])]}))


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
        pytest.param(in_place, 0, 2 / 3, id="the first first"),
        pytest.param(lambda request: said("They are all good."), 0, None, id="no ranking"),
        pytest.param(lambda request: Reply(b"", 500), 0, None, id="an error"),
    ],
)
def test_a_bad_judge_is_refused(tmp_path: Path, judge: Judge, judged: int, flips: float | None) -> None:
    outcome = examined(tmp_path, judge)
    assert not outcome["serves"]
    assert outcome["judged"] == judged
    assert outcome["order_flips"] == (None if flips is None else pytest.approx(flips, abs=0.35))
    if not judged:
        assert outcome["accuracy"]["value"] == 0.25  # what it does not judge is a guess


def test_without_held_out_picks_nothing_serves(tmp_path: Path) -> None:
    outcome = examined(tmp_path, in_place, picks=0)
    assert not outcome["serves"]
    assert outcome["asked"] == 0


def test_a_spent_budget_is_said_and_a_night_that_goes_on_does_not_spend_it_again(tmp_path: Path) -> None:
    outcome = examined(tmp_path, by(len), budget_tokens=100)
    assert "budget of 100 tokens" in outcome["stopped"]
    assert outcome["judged"] < 40


def test_completions_of_the_owners_prompts_are_ranked(tmp_path: Path) -> None:
    owner = {"kind": OWNER, "benchmark": None, "truth": None, "level": None, "entry": None}
    asked = [prompt("sum", 0), prompt("own", 1) | owner]
    asked = [row | {"messages": json.dumps([{"role": "user", "content": "Say."}])} for row in asked]
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
