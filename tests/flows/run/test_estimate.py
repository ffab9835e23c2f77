"""How long a night will still take, from the files of this night and of the one before."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows.run.estimate import seconds_left
from tasks.incidents import end_early
from tasks.plan import plan_night

DATE, BEFORE = "2026-11-20", "2026-11-19"
LESSONS = {"lessons/corrections": 2.0, "lessons/words": 1.0, "lessons/feedback": 1.0}
OTHERS = {"freeze_journal": 1.0, "distill": 30.0, "fit_reward_model": 1.0} | LESSONS
EXAMS = {f"evaluate/{model}": 20.0 for model in ("champion", "distilled", "candidate")}
DECIDE = 1.0
ROUNDS, QUIZZES = 6 * 10, 3 * 4
WHOLE = 36 + ROUNDS + QUIZZES + 60 + DECIDE


def config(*overrides: str) -> NightConfig:
    return load_night(STARTER, ["grpo.rounds=6", "grpo.quiz_every_rounds=2", *overrides])


def commit(
    folder: Path, stages: dict[str, float], rounds: Sequence[float | None] = (), quiz: float | None = None
) -> None:
    """Write stages with their seconds; rounds with theirs by the clock (None: an interruption cut it in two)."""
    for path, seconds in stages.items():
        (folder / path).mkdir(parents=True)
        (folder / path / "manifest.json").write_text(json.dumps({"seconds": seconds}))
    for number, seconds in enumerate(rounds, 1):
        path = folder / f"round-{number:02d}"
        commit(path, {"checkpoint": 3.0} | ({"quiz": quiz} if quiz and number % 2 == 0 else {}))
        figures = {} if seconds is None else {"seconds_round": seconds}
        (path / "checkpoint" / "metrics.json").write_text(json.dumps(figures))


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The night before: 37 s without rounds and exams, rounds of 10 s, quizzes of 4 s, exams of 20 s."""
    commit(tmp_path / BEFORE, OTHERS | EXAMS | {"decide": DECIDE}, [10.0] * 6, quiz=4.0)
    return tmp_path / BEFORE


@pytest.fixture
def tonight(tmp_path: Path) -> Path:
    (tmp_path / DATE).mkdir()
    return tmp_path / DATE


def test_at_the_start_all_is_as_the_night_before(tonight: Path, before: Path) -> None:
    assert seconds_left(tonight, config(), "starting", 0.0, before) == WHOLE
    commit(tonight, {"freeze_journal": 1.0})
    assert seconds_left(tonight, config(), "distill", 12.0, before) == WHOLE - 1 - 12
    assert seconds_left(tonight, config(), "distill", 500.0, before) == WHOLE - 1 - 30


def test_its_own_rounds_count_for_more_than_last_nights(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS | {"evaluate/champion": 20.0, "evaluate/distilled": 20.0}, [30.0, None, 6.0, 8.0], quiz=5.0)
    left = 2 * 8 + 5 + 20 + DECIDE
    assert seconds_left(tonight, config(), "round 5 · sample", 0.0, before) == left
    assert seconds_left(tonight, config(), "round 5 · sample", 3.0, before) == left - 3
    assert seconds_left(tonight, config(), "round 5 · sample", 99.0, before) == left - 8


def test_its_own_exams_count_for_more_than_last_nights(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS | {"evaluate/champion": 50.0, "evaluate/distilled": 45.0}, [8.0] * 6)
    assert seconds_left(tonight, config(), "evaluate · candidate", 10.0, before) == 40.0 + DECIDE


def test_a_night_that_ended_its_rounds_early_begins_no_more(tonight: Path, before: Path) -> None:
    commit(tonight, OTHERS | {"evaluate/champion": 20.0, "evaluate/distilled": 20.0}, [8.0])
    commit(before, {"picks/candidate": 2.0})
    assert seconds_left(tonight, config(), "round 2 · score", 0.0, before) == 5 * 8 + QUIZZES + 2 + 20 + DECIDE
    end_early(tonight, 1, "a severe alarm", 1)
    assert seconds_left(tonight, config(), "picks · candidate", 0.0, before) == 2 + 20 + DECIDE


def test_all_blocks_and_the_lessons_between_them_count(tonight: Path, before: Path) -> None:
    order = config("stages=[distill, {grpo: 2}, distill, {grpo: 3}]", "lora={}")
    commit(before, {"distill-2": 12.0, "merge": 7.0})
    commit(tonight, OTHERS | {"evaluate/champion": 20.0, "evaluate/distilled": 20.0}, [8.0] * 2)
    commit(tonight, {"merge": 5.0})
    assert seconds_left(tonight, order, "distill-2", 0.0, before) is None  # nobody knows what merge-2 takes
    commit(before, {"merge-2": 6.0})
    left = 12 + 3 * 8 + 4 + 6 + 20 + DECIDE
    assert seconds_left(tonight, order, "distill-2", 2.0, before) == left - 2
    end_early(tonight, 2, "no time was left", 2)
    assert seconds_left(tonight, order, "evaluate · candidate", 0.0, before) == 20 + DECIDE


def test_every_stage_outside_the_rounds_counts(tonight: Path, before: Path) -> None:
    order = config(
        "stages=[distill, {grpo: 2}, self_distill, lessons, {grpo: 4}]",
        "preference_learning=both",
        "distill.teacher={base_url: 'http://127.0.0.1:8000/v1', model: wise}",
        "distill.files=[{source: some.jsonl}]",
    )
    others = {"import_traces": 3.0, "ask_teacher": 200.0, "self_distill_answers": 0.5, "self_distill": 9.0}
    others |= {"lessons/picks": 4.0}
    for path, seconds in others.items():
        assert seconds_left(tonight, order, "starting", 0.0, before) is None
        commit(before, {path: seconds})
    assert seconds_left(tonight, order, "starting", 0.0, before) == WHOLE + sum(others.values())
    paths = {stage.path for stage in plan_night(order).timeline if not stage.optional}
    assert {*OTHERS, *EXAMS, *others} <= paths


def test_optional_stages_count_as_the_night_before_had_them(tonight: Path, before: Path) -> None:
    """Exams between lessons, the vault's, and rankings of held-out picks: until the night has passed their place."""
    order = config("exam.vault=100", "lessons.examine=true", "stages=[distill, lessons, {grpo: 6}]")
    exams = {"evaluate/step-1": 20.0, "lessons/evaluate": 20.0, "lessons/words/evaluate": 20.0}
    rest = {f"picks/{model}": 2.0 for model in ("champion", "distilled", "candidate")}
    rest |= {"vault/ancestor": 11.0, "vault/serving": 13.0, "vault/comparison": 1.0}
    commit(tonight, {"freeze_journal": 1.0, "distill": 30.0})
    plain = seconds_left(tonight, order, "lessons · corrections", 0.0, before)
    assert plain is not None
    commit(before, exams | rest)
    assert seconds_left(tonight, order, "evaluate · step-1", 0.0, before) == plain + 60 + 31
    assert seconds_left(tonight, order, "lessons · corrections", 0.0, before) == plain + 20 + 31


def test_the_first_night_has_nothing_to_tell_it_from(tonight: Path) -> None:
    commit(tonight, OTHERS, [8.0, 9.0])
    assert seconds_left(tonight, config(), "round 3 · sample", 0.0, None) is None
