"""The stage that decides, law by law: who is promoted, why, and what the next night begins with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conf.sections.exam import ExamConfig
from tasks.evaluation.decide import MASTERED, is_mastered
from tasks.evaluation.sequential import looks
from tasks.evaluation.statistics import Accuracy
from tasks.tables import EVALUATIONS, read_table, write_table
from tests.tasks.doubles.exam import taken_quiz
from tests.tasks.doubles.night import DIGESTS, EXAM, TARGET, write_decision, write_evaluations, write_exam
from tests.tasks.doubles.picks import ranking

ALONE = ExamConfig(target=EXAM.target)  # without guards
ENGLISH = ALONE.model_copy(update={"english_margin": 0.05})
GUARD = "arithmetic-3"  # margin 0.06: of 100 problems two may be lost, not three
BEGINS = "The candidate was ahead but is not proven: with `start_from: latest`, the next night begins with it."
NOT_AHEAD = "The next night begins with the champion."
FAILED = (
    "The candidate was ahead, but the next night begins with the champion: this one failed a check, or was the fourth "
    "in a row."
)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    return tmp_path / "2026-11-20"


def decided(
    night: Path,
    gained: int,
    guard: Mapping[str, int] | None = None,
    nats: Mapping[str, float] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """An exam of 400 problems, of which the champion solves 100, the candidate these and `gained` more.

    `guard`: how many of its 100 problems each model solves. `nats`: how well each predicts English. With 9 gained of
    400 of at most 868 problems p = 1/512, which is below the look's level, 0.0053; with 5 it is 1/32.
    """
    guard = guard or {}
    roles = tuple({"champion": 0, "candidate": 0, **guard, **(nats or {})})
    for role in roles:
        solved = {TARGET: [n < 100 + gained * (role == "candidate") for n in range(400)]}
        solved |= {GUARD: [n < guard[role] for n in range(100)]} if guard else {}
        write_evaluations(night / "evaluate" / role, role, solved)
        if nats:
            passages = [nats[role] + passage / 100 for passage in range(30)]
            (night / "evaluate" / role / "english.json").write_text(json.dumps({"nats": passages}))
    return write_decision(night, roles, **{"exam": EXAM if guard else ALONE, **options})


def test_one_that_its_look_finds_better_is_promoted(night: Path) -> None:
    found = decided(night, 9)
    assert (found["promote"], found["target"], found["planned"]) == (True, TARGET, [400, 868])
    assert (found["looks"][0]["verdict"], found["looks"][0]["level"]) == ("better", 0.025 * (400 / 868) ** 2)
    (reason,) = found["reasons"]
    assert "p = 0.0020, at most this look's level 0.0053" in reason
    assert (found["next_night_begins_with_it"], found["unpromoted"]) == (False, 0)
    assert found["digests"].keys() == {"champion", "start", "distilled", "candidate"}
    assert (found["growth"], found["taste"]) == (None, None)


@pytest.mark.parametrize(
    ("solved", "problems", "mastered"),
    [(8, 10, True), (4, 10, False), (859, 868, False), (868, 868, True), (294, 300, True), (293, 300, False)],
)
def test_an_exam_whose_last_problems_are_too_few_to_show_a_gain_is_mastered(
    solved: int, problems: int, mastered: bool
) -> None:
    """Six more right answers, and none lost, have p = 0.016; five have 0.031. The last look of 300 has 0.014."""
    assert is_mastered(Accuracy.of(solved, problems), looks(problems), 0.025) is mastered


def test_episodes_whose_value_exceeds_one_are_promoted_and_told_nothing_of_flips(night: Path) -> None:
    for role, value in {"champion": 1.5, "candidate": 1.501}.items():
        write_evaluations(night / "evaluate" / role, role, {TARGET: [True] * 400})
        file = night / "evaluate" / role / "evaluations.parquet"
        write_table(file, EVALUATIONS, read_table(file, EVALUATIONS).assign(value=value, turns=1).to_dict("records"))
    better = write_decision(night, exam=ALONE)
    assert (better["promote"], len(better["reasons"])) == (True, 1)
    kept = write_decision(night, exam=ALONE, alpha=1e-200)
    assert (kept["promote"], kept["reasons"][1:]) == (False, [BEGINS])


def test_the_promotion_that_masters_the_exam_says_that_it_was_the_last(night: Path) -> None:
    found = decided(night, 298)
    assert (found["promote"], found["reasons"][1:]) == (True, [MASTERED])


def test_one_that_is_ahead_but_unproven_is_what_the_next_night_begins_with(night: Path) -> None:
    found = decided(night, 5, unpromoted=2)
    assert found["promote"] is False
    assert "p = 0.0312, above this look's level 0.0053" in found["reasons"][0]
    said = "An exam of up to 868 problems detects a true gain of 0.04 four times in five if 15 % of the answers flip."
    assert found["reasons"][1] == said
    assert (found["next_night_begins_with_it"], found["unpromoted"], found["reasons"][-1]) == (True, 3, BEGINS)


@pytest.mark.parametrize(
    ("gained", "options", "last"),
    [
        (5, {"unpromoted": 3}, FAILED),  # it would be the fourth
        (5, {"severe": ("The quiz fell.",)}, FAILED),
        (5, {"exam": ENGLISH, "nats": {"champion": 3.0, "candidate": 3.2}}, FAILED),
        (5, {"exam": ENGLISH, "nats": {"champion": 3.0, "candidate": 3.01}}, BEGINS),
        (0, {}, NOT_AHEAD),
        (-5, {}, NOT_AHEAD),
    ],
)
def test_one_that_is_not_ahead_or_failed_is_not(night: Path, gained: int, options: dict[str, Any], last: str) -> None:
    found = decided(night, gained, **options)
    assert (found["promote"], found["reasons"][-1]) == (False, last)
    assert (found["next_night_begins_with_it"], found["unpromoted"]) == (last == BEGINS, int(last == BEGINS))


@pytest.mark.parametrize(("solved", "begins"), [(15, True), (14, False)])  # p for worse than 20 of 40: 1/32 and 1/64
def test_nor_is_one_that_failed_the_quiz(night: Path, solved: int, begins: bool) -> None:
    quizzes = {"start": taken_quiz(night / "quiz-start", 20, 40), "end": taken_quiz(night / "quiz-end", solved, 40)}
    assert decided(night, 5, quizzes=quizzes)["next_night_begins_with_it"] is begins
    assert decided(night, 9, quizzes=quizzes)["promote"] is True  # the quiz never decides on a promotion


@pytest.mark.parametrize(
    ("guard", "said"),
    [
        ({"champion": 50, "candidate": 49}, None),
        ({"champion": 50, "candidate": 47}, "Guard arithmetic-3: −0.03 (lower bound −0.07"),
        ({"first": 51, "champion": 50, "candidate": 50}, None),
        ({"first": 53, "champion": 51, "candidate": 50}, "Guard arithmetic-3 against the first student: −0.03"),
    ],
)
def test_guards_compare_with_champion_and_first_student(night: Path, guard: dict[str, int], said: str | None) -> None:
    found = decided(night, 9, guard)
    assert found["promote"] is (said is None)
    assert found["next_night_begins_with_it"] is False
    assert (found["reasons"][-1] == FAILED) is (said is not None)
    refused = [reason for reason in found["reasons"] if "not passed" in reason]
    assert [reason.startswith(said or "-") for reason in refused] == [True] * (said is not None)
    assert found["comparisons"]["candidate"].keys() == {TARGET, GUARD}  # the second guard was not examined


@pytest.mark.parametrize(("first", "promote"), [(2.98, True), (2.9, False)])
def test_english_is_held_against_the_first_student_too(night: Path, first: float, promote: bool) -> None:
    found = decided(night, 9, nats={"champion": 3.0, "candidate": 3.0, "first": first}, exam=ENGLISH)
    assert found["promote"] is promote
    said = f"Guard English prose against the first student: {first + 0.145:.2f} → 3.15 nats a token"
    assert any(reason.startswith(said) for reason in found["reasons"])


def test_after_a_severe_alarm_the_champion_stays_and_the_reason_says_so(night: Path) -> None:
    calm = decided(night, 9)
    alarmed = decided(night, 9, severe=("The disk runs short.", "The quiz fell."))
    assert alarmed["promote"] is False
    assert alarmed["reasons"] == [
        "Nothing is promoted after a severe alarm. The disk runs short.",
        "Nothing is promoted after a severe alarm. The quiz fell.",
        *calm["reasons"],
        FAILED,
    ]
    assert alarmed["comparisons"] == calm["comparisons"]


def test_the_champion_itself_is_never_promoted(night: Path) -> None:
    for role in ("champion", "candidate"):
        write_evaluations(night / "evaluate" / role, "champion", {TARGET: [True] * 400})
    found = write_decision(night, exam=ALONE)
    assert found["promote"] is found["next_night_begins_with_it"] is False
    assert found["reasons"] == [f"The candidate is the champion itself ({DIGESTS['champion'][:12]}).", NOT_AHEAD]


def test_the_rounds_growth_is_of_all_problems(night: Path) -> None:
    found = write_exam(night, whole=True)
    growth = found["growth"]
    assert (growth["n"], growth["before_digest"]) == (400, DIGESTS["distilled"])
    assert growth["after_digest"] == found["comparisons"]["candidate"][TARGET]["after_digest"] == DIGESTS["candidate"]


@pytest.mark.parametrize(
    ("favoured", "margin", "promote", "decides"),
    [
        (10, 0.2, True, True),
        (3, 0.2, False, False),  # not significant
        (10, 0.0001, False, False),  # the target may not get worse, and here that is not shown
        (None, 0.2, False, False),  # too few picks to show anything
    ],
)
def test_picks_decide_too(night: Path, favoured: int | None, margin: float, promote: bool, decides: bool) -> None:
    exam = ALONE.model_copy(update={"target": EXAM.target.model_copy(update={"margin": margin})})
    alone = decided(night, 0, exam=exam)
    assert alone["promote"] is False
    count = 3 if favoured is None else 12
    after = [number < (count if favoured is None else favoured) for number in range(count)]
    rankings = {
        "champion_picks": ranking(night / "picks-champion", [False] * count, generated=9),
        "candidate_picks": ranking(night / "picks-candidate", after, generated=9),
    }
    found = decided(night, 0, exam=exam, **rankings)
    assert found["promote"] is promote
    if favoured is None:
        assert found == alone
        return
    assert (found["taste"]["n"], found["taste"]["before"], found["taste"]["after"]) == (12, 0, favoured)
    (said,) = (reason for reason in found["reasons"] if reason.startswith("Your held-out picks: the candidate favours"))
    assert f"does in {favoured} of {favoured} conversations" in said
    assert said.endswith(": your picks decide.") is decides


def test_where_the_target_decides_the_picks_do_not_claim_it(night: Path) -> None:
    """And picks of one conversation are one vote."""
    rankings = {
        "champion_picks": ranking(night / "picks-champion", [False] * 40, together=4),
        "candidate_picks": ranking(night / "picks-candidate", [True] * 40, together=4),
    }
    found = decided(night, 9, **rankings)
    assert (found["promote"], "decide" in found["reasons"][-1]) == (True, False)
    taste = found["taste"]
    assert (taste["n"], taste["after"], taste["gained"], taste["p_value"]) == (40, 40, 10, 2**-10)
