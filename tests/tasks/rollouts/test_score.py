"""Scores and the running solve rates: earlier tries fade, ungraded ones do not count."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, GrpoConfig, RewardConfig, SandboxConfig
from conf.sections.lessons import LearnedRewardConfig
from rewards.data.benchmarks import configured
from rewards.verifier import Attempt, Problem
from tasks.rollouts.grade import scores_of
from tasks.rollouts.score import score
from tasks.rollouts.verdicts import count
from tasks.stage import Artifact
from tasks.tables import LEARNED, PROMPTS, ROLLOUTS, SCORES, SOLVE_RATES, read_table
from tests.tasks.doubles.tables import prompt, rollout, run_stage, solve_rate, write_stage

ARITHMETIC = BenchmarkConfig(name="arithmetic")
GSM8K = BenchmarkConfig(name="gsm8k")


def run(
    folder: Path,
    prompts: list[dict[str, Any]],
    rollouts: list[dict[str, Any]],
    before: Artifact | None = None,
    decay: float = 0.7,
    sources: tuple[BenchmarkConfig, ...] = (ARITHMETIC, GSM8K),
    learned: Sequence[float | None] | None = None,
) -> Artifact:
    """Score a round in `folder`. Returns the stage."""
    with_learned: dict[str, Any] = {}
    if learned is not None:
        keys = [{name: row[name] for name in ("problem_id", "group", "sample")} for row in rollouts]
        rows = [key | {"learned": reward} for key, reward in zip(keys, learned, strict=True)]
        judged = write_stage(folder / "judge", {"learned": (LEARNED, rows)})
        with_learned = {"learned": judged, "learned_reward": LearnedRewardConfig()}
    asked = write_stage(folder / "select_prompts", {"prompts": (PROMPTS, prompts)})
    sampled = write_stage(folder / "sample", {"rollouts": (ROLLOUTS, rollouts)})
    return run_stage(
        score,
        folder / "score",
        prompts=asked,
        rollouts=sampled,
        sources=sources,
        grpo=GrpoConfig(max_completion_tokens=100),
        reward=RewardConfig(),
        sandbox=SandboxConfig(),
        solve_rates=before,
        decay=decay,
        night="2026-11-20",
        **with_learned,
    )


def rates(scored: Artifact) -> dict[str, tuple[float, float]]:
    rows = read_table(scored.folder / "solve_rates.parquet", SOLVE_RATES)
    assert not rows.problem_id.duplicated().any()
    return {row["problem_id"]: (row["tried"], row["solved"]) for row in rows.to_dict("records")}


PLUS, MINUS = "arithmetic/1/plus", "arithmetic/1/minus"
ASKED = [prompt("a", 0, "12"), prompt("b", 1, "5", kind=MINUS)]
ANSWERED = [
    rollout("a", 0, 0, "#### 12"),
    rollout("a", 0, 1, "#### 13"),
    rollout("a", 0, 2, "twelve"),
    rollout("b", 1, 0, "10 - 5 = 5\n#### 5"),
]


def test_scores_and_solve_rates_by_hand(tmp_path: Path) -> None:
    scored = run(tmp_path, ASKED, ANSWERED)
    table = read_table(scored.folder / "scores.parquet", SCORES)
    assert table.verdict.tolist() == ["correct", "wrong", "no_answer", "correct"]
    assert table.reward.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert list(zip(table.problem_id, table.group, table["sample"], strict=True)) == [
        *(("a", 0, number) for number in range(3)),
        ("b", 1, 0),
    ]
    length = len("#### 12") / 100
    assert json.loads(table.parts[0]) == {"correct": 1.0, "format": 1.0, "length": length}
    assert rates(scored) == {PLUS: (3, 1), MINUS: (1, 1)}
    (row, _) = read_table(scored.folder / "solve_rates.parquet", SOLVE_RATES).sort_values("tried").to_dict("records")
    assert (row["night"], row["policy_digest"], row["level"]) == ("2026-11-20", "cafe42", "1")


def test_a_hint_is_a_part_of_the_answer(tmp_path: Path) -> None:
    asked = [prompt("b", 0, "5", kind=MINUS) | {"hint": "10 - 5 = 5\n##"}]
    table = read_table(run(tmp_path, asked, [rollout("b", 0, 0, "## 5")]).folder / "scores.parquet", SCORES)
    assert table.verdict.tolist() == ["correct"]


def test_a_given_solution_is_rewarded_and_no_try(tmp_path: Path) -> None:
    """A wrong one is not graded, so it is no part of the group's baseline."""
    right, wrong = (
        rollout("a", 0, n, f"#### {answer}") | {"finish_reason": "given"} for n, answer in ((1, 12), (2, 13))
    )
    scored = run(tmp_path, ASKED[:1], [rollout("a", 0, 0, "#### 13"), right, wrong])
    table = read_table(scored.folder / "scores.parquet", SCORES)
    assert table.verdict.tolist() == ["wrong", "given", "grader_failed"]
    assert table.reward.fillna(-1).tolist() == [0.0, 1.0, -1.0]
    assert rates(scored) == {PLUS: (1, 0)}


def test_earlier_tries_fade_and_kinds_that_were_not_drawn_stay(tmp_path: Path) -> None:
    known = [solve_rate(PLUS, 10, 4), solve_rate("arithmetic/2/compare", 20, 10, level="2")]
    before = write_stage(tmp_path / "before", {"solve_rates": (SOLVE_RATES, known)})
    found = rates(run(tmp_path / "after", ASKED, ANSWERED, before, decay=0.7))
    assert found[PLUS] == pytest.approx((0.7 * 10 + 3, 0.7 * 4 + 1))
    assert found[MINUS] == (1, 1)
    assert found["arithmetic/2/compare"] == pytest.approx((14, 7))
    assert rates(run(tmp_path / "forgetful", ASKED, ANSWERED, before, decay=0.0))[PLUS] == (3, 1)
    assert rates(run(tmp_path / "refill", ASKED, ANSWERED, before, decay=1.0))[PLUS] == (13, 5)


def test_what_the_grader_could_not_judge_is_no_try(tmp_path: Path) -> None:
    """The truth of the first problem cannot be read: its completions have no reward, not 0."""
    asked = [
        prompt("g/0", 0, "no marker", benchmark="gsm8k", kind="g/0", level=None, entry=1),
        prompt("g/1", 1, "2 + 2 = 4 #### 4", benchmark="gsm8k", kind="g/1", level=None, entry=1),
    ]
    answered = [rollout("g/0", 0, 0, "#### 1"), rollout("g/1", 1, 0, "#### 4"), rollout("g/1", 1, 1, "#### 5")]
    scored = run(tmp_path, asked, answered)
    table = read_table(scored.folder / "scores.parquet", SCORES)
    assert table.reward.isna().tolist() == [True, False, False]
    assert table.verdict.tolist() == ["grader_failed", "correct", "wrong"]
    assert rates(scored) == {"g/1": (2, 1)}


def test_problems_without_a_level_are_one_kind_from_round_to_round(tmp_path: Path) -> None:
    asked = [prompt("g/1", 0, "#### 4", benchmark="gsm8k", kind="g/1", level=None, entry=1)]
    answered = [rollout("g/1", 0, 0, "#### 4"), rollout("g/1", 0, 1, "#### 4")]
    first = run(tmp_path / "1", asked, answered)
    second = run(tmp_path / "2", asked, answered, first, decay=0.5)
    assert rates(second) == {"g/1": (3, 3)}
    assert read_table(second.folder / "solve_rates.parquet", SOLVE_RATES).level.tolist() == [None]


def test_two_entries_of_one_benchmark_judge_their_own(tmp_path: Path) -> None:
    """One of them accepts the last number as an answer; the other does not."""
    lenient = BenchmarkConfig(name="gsm8k", source="elsewhere", lenient=True)
    asked = [
        prompt("gsm8k/train/0", 0, "#### 4", benchmark="gsm8k", kind="here", level=None, entry=0),
        prompt("gsm8k/train/0", 1, "#### 4", benchmark="gsm8k", kind="elsewhere", level=None, entry=1),
    ]
    answered = [rollout("gsm8k/train/0", group, sample, "It is 4.") for group in (0, 1) for sample in (0, 1)]
    scored = run(tmp_path, asked, answered, sources=(GSM8K, lenient))
    table = read_table(scored.folder / "scores.parquet", SCORES)
    assert table.verdict.tolist() == ["no_answer", "no_answer", "correct", "correct"]
    assert rates(scored) == {"here": (2, 0), "elsewhere": (2, 2)}
    assert scored.read_json("verdicts.json") == count([("gsm8k", verdict) for verdict in table.verdict])


OWN = prompt("owner/1", 2, kind="owner") | {"benchmark": None, "truth": None, "level": None, "entry": None}
OWN_ANSWERS = [rollout("owner/1", 2, 0, "Gladly."), rollout("owner/1", 2, 1, ""), rollout("owner/1", 2, 2, "Well.")]


def test_an_owners_prompt_has_a_learned_reward_and_no_solve_rate(tmp_path: Path) -> None:
    scored = run(tmp_path, [*ASKED, OWN], [*ANSWERED, *OWN_ANSWERS], learned=[0.5, 0.5, 0.5, 0.5, 1.0, 0.0, None])
    table = read_table(scored.folder / "scores.parquet", SCORES)
    assert table.verdict.tolist() == ["correct", "wrong", "no_answer", "correct", "judged", "judged", "grader_failed"]
    weight = LearnedRewardConfig().weight
    assert table.reward[:6].tolist() == [1.0, 0.0, 0.0, 1.0, weight + 0.5, -weight]
    assert table.reward.isna().tolist() == [False] * 6 + [True]
    assert json.loads(table.parts[5]) == {"learned": 0.0, "learned_z": -1.0, "format": 0.0, "length": 0.0}
    assert rates(scored) == {PLUS: (3, 1), MINUS: (1, 1)}
    counts = scored.read_json("verdicts.json")
    assert (counts["arithmetic"]["correct"], counts["owner"]["judged"], counts["owner"]["grader_failed"]) == (2, 2, 1)


# --- a user's benchmark

BENCHMARK = """
import os, time
from rewards.verifier import Score

class Own:
    name = "own"

    def __init__(self, source):
        pass

    def score(self, attempts):
        if attempts[0].completion == "hang":
            while True:
                pass
        if attempts[0].completion == "die":
            os._exit(1)
        if attempts[0].completion == "lose":
            attempts = attempts[1:]
        if attempts[0].completion == "raise":
            raise LookupError("mine")
        return [Score(1.0, "correct", str(os.getpid())) for _ in attempts]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a user's benchmark."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_users_own.py").write_text(BENCHMARK)
    return "a_users_own:Own"


def attempts(*completions: str) -> list[Attempt]:
    return [Attempt(Problem("p", "own", "?", ""), completion) for completion in completions]


def test_a_users_grader_runs_in_a_child_that_may_hang_die_or_raise(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = configured(BenchmarkConfig(name=own))
    one, two = scores_of(benchmark, attempts("a", "b"))
    assert (one.verdict, one.detail) == ("correct", two.detail)
    assert one.detail != str(os.getpid())
    for what, why in (
        ("raise", "it raised LookupError: mine"),
        ("lose", "it returned 1 scores for 2 answers"),
        ("die", "the grader process died"),
    ):
        failed = scores_of(benchmark, attempts(what, "a"))
        assert [(score.reward, score.verdict) for score in failed] == [(None, "grader_failed")] * 2
        assert failed[0].detail.startswith(why)
    monkeypatch.setattr("tasks.rollouts.grade.LIMIT", 3.0)
    (hung,) = scores_of(benchmark, attempts("hang"))
    assert (hung.reward, hung.verdict) == (None, "grader_failed")
    assert hung.detail == "the grader process was stuck: not finished after 3 s; it was ended at score"
