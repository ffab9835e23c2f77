"""The problems of a round: where there is something to learn, everything sometimes, the exam never."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from conf.storage.home import InputError
from models.hf.loading import load_tokenizer
from rewards.arithmetic import Arithmetic
from tasks.rollouts.draw import expected_signal, shares
from tasks.rollouts.select_prompts import select_prompts
from tasks.stage import Artifact
from tasks.tables import OWNER_PROMPTS, PROMPTS, SOLVE_RATES, read_table
from tests.rewards.datasets import write_gsm8k, write_rows
from tests.tasks.doubles.tables import run_stage, solve_rate, write_stage

ARITHMETIC = BenchmarkConfig(name="arithmetic", levels=("1", "2"))
Choice = Literal["solve_rate", "signal", "even"]
KINDS = sorted({Arithmetic(levels=["1", "2"]).kind(p) for p in Arithmetic(levels=["1", "2"]).draw("0", 500)})


def select(
    folder: Path,
    student: Path,
    *,
    sources: Sequence[BenchmarkConfig] = (ARITHMETIC,),
    count: int = 40,
    exploration: float = 0.3,
    choice: Choice = "solve_rate",
    hints: tuple[float, ...] = (),
    solve_rates: Artifact | None = None,
    seed: str = "1 2026-11-20 round 1",
    excluded: Sequence[str] = (),
    longest: int = 10_000,
    drawn: Sequence[Path] = (),
    **owner: Any,
) -> pd.DataFrame:
    run_stage(
        select_prompts,
        folder,
        sources=tuple(sources),
        grpo=GrpoConfig(exploration=exploration, choice=choice, hints=hints),
        student=StudentConfig(),
        checkpoint=student,
        solve_rates=solve_rates,
        seed=seed,
        exam_questions=excluded,
        max_prompt_tokens=longest,
        count=count,
        drawn=tuple(Artifact(folder=place, digest="") for place in drawn),
        **owner,
    )
    return read_table(folder / "prompts.parquet", PROMPTS)


def rates(folder: Path, **solved: float) -> Artifact:
    """Solve rates of 100 tries each, `solved` by the kind's last part, 0.5 for all others."""
    rows = [solve_rate(kind, 100, 100 * solved.get(kind.split("/")[2], 0.5)) for kind in KINDS]
    return write_stage(folder, {"solve_rates": (SOLVE_RATES, rows)})


def gsm8k(folder: Path, problems: int, question: str = "How many?") -> BenchmarkConfig:
    return BenchmarkConfig(name="gsm8k", source=str(write_gsm8k(folder, problems, question=question)))


def test_expected_signal_by_hand() -> None:
    # of two completions: 1 − ¼ − ¼, nothing, and for the new kind 1 − 1/16 − 9/16 at the mean of the known, ¼
    found = expected_signal(["half", "never", "new"], {"half": 0.5, "never": 0.0}, 2)
    assert found == pytest.approx((0.5 + 0.0 + 0.375) / 3)


@given(st.floats(0, 1), st.integers(2, 16))
def test_expected_signal_is_that_of_the_binomial_distribution(rate: float, size: int) -> None:
    mixed = sum(math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(1, size))
    assert expected_signal(["kind"], {"kind": rate}, size) == pytest.approx(mixed, abs=1e-12)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 200))
def test_shares_add_up_and_are_fair(weights: list[float], count: int) -> None:
    found = shares(weights, count)
    assert sum(found) == count
    for weight, share in zip(weights, found, strict=True):
        assert abs(share - count * weight / sum(weights)) < 1 + 1e-9


def test_a_round_of_prompts_is_the_same_for_the_same_seed_alone(tmp_path: Path, student: Path) -> None:
    table = select(tmp_path / "round", student)
    assert table.group.tolist() == list(range(40))
    assert set(table.kind) <= set(KINDS)
    assert len(set(zip(table.problem_id, table.question, strict=True))) == 40
    tokenizer = load_tokenizer(student)
    for row in table.to_dict("records"):
        (message,) = json.loads(row["messages"])
        assert message["content"].endswith(row["question"])
        rendered = tokenizer.decode([int(token) for token in row["prompt_token_ids"]])
        assert rendered == f"User: {message['content']}\nAssistant:"
        assert (row["benchmark"], row["level"]) == ("arithmetic", row["kind"].split("/")[1])
    select(tmp_path / "same", student)
    assert (tmp_path / "round/prompts.parquet").read_bytes() == (tmp_path / "same/prompts.parquet").read_bytes()
    other = select(tmp_path / "other", student, seed="1 2026-11-20 round 2")
    assert set(table.question) != set(other.question)


@pytest.mark.parametrize("choice", ["signal", "even"])
def test_another_choice_draws_by_the_estimates_of_its_arms(tmp_path: Path, student: Path, choice: Choice) -> None:
    """All signal so far came from one of thirteen kinds; `even` does not care."""
    arms = {kind: {"drawn": 1, "signal": None, "estimate": float(kind == "arithmetic/1/plus")} for kind in KINDS}
    before = write_stage(tmp_path / "score", {"solve_rates": (SOLVE_RATES, [])}, arms=arms)
    table = select(tmp_path / "drawn", student, solve_rates=before, exploration=0.1, choice=choice)
    share = (table.kind == "arithmetic/1/plus").mean()
    assert share < 0.3 if choice == "even" else share > 0.7


def selection(folder: Path) -> dict[str, float]:
    return json.loads((folder / "selection.json").read_text())


def test_the_solve_rates_predict_the_share_with_signal(tmp_path: Path, student: Path) -> None:
    """Two kinds of thirteen have no signal, the others of eight completions at p = ½ nearly always."""
    half = 1 - 2 * 0.5**8
    solved = rates(tmp_path / "rates", **{"gain-lose": 0.0, "plus": 1.0})
    select(tmp_path / "weighted", student, solve_rates=solved, exploration=0.0)
    assert selection(tmp_path / "weighted") == {"drawn": 40, "expected_signal_share": pytest.approx(half)}
    table = select(tmp_path / "even", student, solve_rates=solved, exploration=1.0)
    learnable = sum(kind.split("/")[2] not in ("gain-lose", "plus") for kind in table.kind)
    assert selection(tmp_path / "even")["expected_signal_share"] == pytest.approx(half * learnable / 40)
    select(tmp_path / "first", student)
    assert selection(tmp_path / "first") == {"drawn": 40}


def test_a_refill_draws_nothing_that_the_round_has(
    tmp_path: Path, student: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = [gsm8k(tmp_path / "gsm8k", 12)]
    first = select(tmp_path / "first", student, sources=source, count=7)
    folders = [tmp_path / "first", tmp_path / "second"]
    second = select(folders[1], student, sources=source, count=3, drawn=folders[:1], seed="refill 1")
    third = select(tmp_path / "third", student, sources=source, count=3, drawn=folders, seed="refill 2")
    ids = [*first.problem_id, *second.problem_id, *third.problem_id]
    assert sorted(ids) == sorted(f"gsm8k/train/{n}" for n in range(12))
    assert [*first.group, *second.group, *third.group] == list(range(12))
    nothing = select(tmp_path / "fourth", student, sources=source, count=3, drawn=[*folders, tmp_path / "third"])
    assert len(nothing) == selection(tmp_path / "fourth")["drawn"] == 0
    assert "has 2 of the 3 prompts asked for (0 others are too long)" in caplog.text
    select(tmp_path / "short", student, sources=source, count=12, longest=first.prompt_token_ids.map(len).min())
    assert "has 10 of the 12 prompts asked for (2 others are too long)" in caplog.text  # those with two digits


def test_a_refill_of_one_prompt_has_every_kind_to_choose_from(tmp_path: Path, student: Path) -> None:
    only = rates(tmp_path / "rates", **{kind.split("/")[2]: 0.0 for kind in KINDS if not kind.endswith("/times")})
    for number in range(10):
        (kind,) = select(
            tmp_path / str(number), student, count=1, exploration=0.0, solve_rates=only, seed=str(number)
        ).kind
        assert kind == "arithmetic/1/times"


def test_prompts_that_leave_no_room_are_skipped(tmp_path: Path, student: Path) -> None:
    lengths = select(tmp_path / "all", student).prompt_token_ids.map(len)
    longest = int(lengths.median())
    table = select(tmp_path / "short", student, longest=longest)
    assert len(table) == 40
    assert table.prompt_token_ids.map(len).max() <= longest
    with pytest.raises(InputError, match="engine.max_model_len: .* 20 tokens"):
        select(tmp_path / "none", student, longest=20)


def test_thousands_of_kinds_do_not_make_the_weights_vanish(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "gsm8k", 4000)
    never = [solve_rate(f"gsm8k/train/{n}", 8, 0, level=None) for n in range(3999)]
    known = write_stage(tmp_path / "rates", {"solve_rates": (SOLVE_RATES, never)})
    counts: Counter[str] = Counter()
    for number in range(3):
        table: Any = select(tmp_path / str(number), student, sources=[source], solve_rates=known, seed=str(number))
        assert len(set(table.problem_id)) == 40
        counts.update(table.problem_id)
    # the one never tried has 0.7 of the weight; hardly any other comes twice
    assert counts["gsm8k/train/3999"] == 3
    assert len(counts) > 100


def test_a_problem_never_tried_counts_like_others_of_its_level(tmp_path: Path, student: Path) -> None:
    """Of each level ten were tried: of the first, half of the answers were correct; of the second, none."""
    rows = [{"question": f"How many? {n}", "answer": f"{'<<1+1=2>>' * (1 + n % 2)}#### {n}"} for n in range(400)]
    tried = [solve_rate(f"gsm8k/train/{n}", 8, 4 * (1 - n % 2), level=str(1 + n % 2)) for n in range(20)]
    known = write_stage(tmp_path / "rates", {"solve_rates": (SOLVE_RATES, tried)})
    source = BenchmarkConfig(name="gsm8k", source=write_rows(tmp_path / "train.jsonl", *rows))
    levels: Counter[str] = Counter()
    for seed in "123":
        table = select(tmp_path / seed, student, sources=[source], solve_rates=known, exploration=0.0, seed=seed)
        levels.update(table.level)
    assert levels["1"] > 100  # of 120; half of them if levels did not matter


@pytest.mark.parametrize(
    ("solved", "practised"),
    [
        ({}, {"0"}),
        ({"0": 0.6}, {"0"}),
        ({"0": 0.7}, {"0", "1"}),
        ({"0": 0.7, "1": 0.7}, {"0", "1", "2"}),
        ({"0": 0.6, "1": 0.7}, {"0"}),  # a tier that is no longer mastered
    ],
)
def test_a_tier_of_ants_joins_once_the_one_below_is_mastered(
    tmp_path: Path, student: Path, solved: dict[str, float], practised: set[str]
) -> None:
    """The greedy ant reaches .97 of the oracle's food on tier 0, and .85 on tier 1."""
    rows = [
        solve_rate(f"tier {tier}", 100.0, 100 * rate) | {"benchmark": "ants", "level": tier}
        for tier, rate in solved.items()
    ]
    rates = write_stage(tmp_path / "score", {"solve_rates": (SOLVE_RATES, rows)}, arms={}) if rows else None
    ants = BenchmarkConfig(name="ants", levels=("0", "1", "2"))
    assert set(select(tmp_path / "drawn", student, sources=[ants], solve_rates=rates).level) == practised


def test_every_prompt_notes_its_entry(tmp_path: Path, student: Path) -> None:
    sources = [gsm8k(tmp_path / "gsm8k", 50), ARITHMETIC, BenchmarkConfig(name="arithmetic", levels=("3",), weight=2.0)]
    table = select(tmp_path / "round", student, sources=sources)
    assert Counter(table.entry) == {0: 10, 1: 10, 2: 20}
    assert set(table.benchmark[table.entry == 0]) == {"gsm8k"}
    assert set(table.level[table.entry == 1]) <= {"1", "2"}
    assert set(table.level[table.entry == 2]) == {"3"}


def test_two_sources_of_one_benchmark_have_solve_rates_of_their_own(tmp_path: Path, student: Path) -> None:
    """Both have a problem `gsm8k/train/0`."""
    sources = [gsm8k(tmp_path / "easy", 20), gsm8k(tmp_path / "hard", 20, question="How many more?")]
    table = select(tmp_path / "round", student, sources=sources)
    assert len(table) == len(set(table.question)) == len(set(table.kind)) == 40
    assert sorted(set(table.problem_id)) == sorted(f"gsm8k/train/{n}" for n in range(20))
    # the hard ones were never solved, the easy ones half of the time: now only the hard problem 0 differs from them
    never = [solve_rate(f"gsm8k/train/{n} of {tmp_path}/hard", 8, 0, level=None) for n in range(1, 20)]
    half = [solve_rate(f"gsm8k/train/{n} of {tmp_path}/easy", 8, 4, level=None) for n in range(20)]
    known = write_stage(tmp_path / "rates", {"solve_rates": (SOLVE_RATES, never + half)})
    few = select(tmp_path / "few", student, sources=sources, count=2, solve_rates=known, exploration=0.0)
    assert few.question.tolist()[1] == "How many more? 0"


def test_an_exam_that_asks_all_is_one_line(tmp_path: Path, student: Path) -> None:
    """That one question is not drawn: tests/flows/evaluation/test_exam_is_closed.py."""
    source = gsm8k(tmp_path / "gsm8k", 20)
    with pytest.raises(InputError, match="the exam asks all of their training problems"):
        select(tmp_path / "none", student, sources=[source], excluded=[f"How many? {n}" for n in range(20)])


def test_problems_that_a_benchmark_leaves_out_are_noted(tmp_path: Path, student: Path) -> None:
    source = gsm8k(tmp_path / "gsm8k", 5)
    with (tmp_path / "gsm8k" / "train.jsonl").open("a") as file:
        file.write('{"question": "How many?", "answer": "nobody knows"}\n')
    select(tmp_path / "round", student, sources=[source, ARITHMETIC])
    noted = json.loads((tmp_path / "round" / "excluded.json").read_text())
    assert noted == {"gsm8k": ["gsm8k/train/5"], "arithmetic": []}


def owned(folder: Path, count: int) -> Artifact:
    rows = [
        {"problem_id": f"owner/{n}", "messages": "[]", "prompt_token_ids": [n, 1], "question": f"Tell {n}"}
        for n in range(count)
    ]
    return write_stage(folder, {"owner_prompts": (OWNER_PROMPTS, rows)})


def test_the_owner_has_a_share_of_the_round_and_others_in_the_next(tmp_path: Path, student: Path) -> None:
    owner = owned(tmp_path / "owner", 30)
    first = select(tmp_path / "1", student, owner=owner, owner_share=0.25)
    again = select(tmp_path / "again", student, owner=owner, owner_share=0.25)
    assert list(first.problem_id) == list(again.problem_id)
    own = first[first.benchmark.isna()]
    assert (len(first), len(own)) == (40, 10)
    assert sorted(first.group) == list(range(40))
    assert own.problem_id.is_unique
    assert (set(own.source), set(own.kind)) == ({"journal"}, {"owner"})
    assert own[["truth", "entry"]].isna().all(axis=None)
    other = select(tmp_path / "2", student, owner=owner, owner_share=0.25, seed="1 2026-11-20 round 2")
    assert set(other[other.benchmark.isna()].problem_id) != set(own.problem_id)
    assert selection(tmp_path / "1")["drawn"] == 40


def test_few_prompts_of_the_owner_leave_the_rest_to_the_benchmarks(tmp_path: Path, student: Path) -> None:
    owner = owned(tmp_path / "owner", 3)
    found = select(tmp_path / "1", student, owner=owner, owner_share=0.5, count=10)
    assert (len(found), int(found.benchmark.isna().sum())) == (10, 3)
    refill = select(tmp_path / "2", student, owner=owner, owner_share=0.5, count=4, drawn=[tmp_path / "1"])
    assert not refill.benchmark.isna().any()  # the round has all of them
    assert sorted(refill.group) == [10, 11, 12, 13]
    alone = select(tmp_path / "3", student, owner=owner, owner_share=1.0, count=3)
    assert alone.benchmark.isna().all()
