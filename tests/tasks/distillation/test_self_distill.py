"""What the student practised, and which of its own answers are worth learning once more."""

import json
from pathlib import Path

import pytest

from conf.load import STARTER, frozen_yaml, load_night
from tasks.distillation.attempts import earlier_rounds, practised, rounds_of
from tasks.distillation.self_distill import own_answers
from tasks.tables import PROMPTS, ROLLOUTS, TRACES, read_table
from tests.tasks.doubles.rounds import RIGHT, WRONG, write_round
from tests.tasks.doubles.tables import rollout, write_stage


def gathered(tmp_path: Path, upto: int = 99, per_problem: int = 4) -> list[tuple[str, str]]:
    nights, folder = tmp_path / "nights", tmp_path / f"answers-{upto}-{per_problem}"
    folder.mkdir()
    own_answers.write(
        folder,
        model="starter",
        scores=(),
        upto=upto,
        per_problem=per_problem,
        date="2026-11-20",
        night=nights / "2026-11-20",
        nights=nights,
    )
    table = read_table(folder / "traces.parquet", TRACES)
    assert set(table.teacher) <= {"itself"}
    return [
        (json.loads(messages)[0]["content"], response)
        for messages, response in zip(table.messages, table.response, strict=True)
    ]


def test_right_answers_to_hard_problems_the_shortest_first(tmp_path: Path) -> None:
    answers = {
        "hard": [("a longer way", 1.0), ("short", 1.0), ("short", 1.0), ("b", 1.0), *[WRONG] * 5],
        "even": [RIGHT, WRONG],
        "never": [WRONG] * 3,
        "ungraded": [RIGHT, ("?", None), ("?", None)],
    }
    write_round(tmp_path / "nights/2026-11-20/round-01", answers)
    assert gathered(tmp_path) == [("hard", "b"), ("hard", "short"), ("hard", "a longer way")]
    assert gathered(tmp_path, per_problem=2) == [("hard", "b"), ("hard", "short")]


def test_the_tries_of_rounds_refills_and_earlier_nights_count_together(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    write_round(nights / "2026-11-18/round-02", {"one": [("old", 1.0)]})
    write_round(nights / "2026-11-20/round-01", {"one": [WRONG] * 2, "two": [RIGHT]})
    write_round(nights / "2026-11-20/round-02/refill-1", {"two": [WRONG] * 2})
    write_round(nights / "2026-11-20/round-10", {"one": [("later", 1.0)]})
    write_round(nights / "2026-11-21/round-01", {"one": [("tomorrow", 1.0)]})
    assert gathered(tmp_path) == [("two", "right")]
    assert gathered(tmp_path, upto=2) == [("one", "old"), ("two", "right")]
    assert gathered(tmp_path, upto=1) == [("one", "old")]


@pytest.mark.parametrize("table", ["score/scores", "select_prompts/prompts", "sample/rollouts"])
def test_a_flipped_bit_in_an_earlier_night_teaches_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    night = tmp_path / "nights/2026-11-18"
    for number, text in enumerate(("right", "an answer that is right"), start=1):
        write_round(night / f"round-0{number}", {f"problem {number}": [(text, 1.0), WRONG, WRONG]})
    damaged = night / f"round-02/{table}.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    assert gathered(tmp_path) == [("problem 1", "right")]
    assert caplog.messages == [f"{damaged}: it was damaged; what its round practised is passed over"]


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    hard = [RIGHT, WRONG, WRONG]
    for number in range(1, 6):
        write_round(nights / f"2026-11-20/round-{number:02d}", {f"problem {number}": hard})
    rounds = [nights / f"2026-11-20/round-{number:02d}" for number in range(1, 6)]
    (rounds[0] / "score/manifest.json").unlink()  # never committed
    (rounds[1] / "sample/rollouts.parquet").unlink()  # tidied away
    (rounds[2] / "select_prompts/prompts.parquet").write_bytes(b"damaged")
    assert gathered(tmp_path) == [("problem 4", "right"), ("problem 5", "right")]
    assert [one.problem.problem_id for one in practised(rounds, answers=False)] == [f"problem {n}" for n in (2, 4, 5)]


def test_the_owners_own_prompts_have_no_truth_to_verify(tmp_path: Path) -> None:
    write_round(tmp_path / "round-01", {"one": [RIGHT, WRONG, WRONG]})
    file = tmp_path / "round-01/select_prompts"
    rows = read_table(file / "prompts.parquet", PROMPTS).to_dict("records")
    for name in ("benchmark", "truth"):
        write_stage(tmp_path / name / "select_prompts", {"prompts": (PROMPTS, [row | {name: None} for row in rows])})  # pyright: ignore
        (tmp_path / name / "score").symlink_to(tmp_path / "round-01/score")
        assert practised([tmp_path / name], answers=False) == []


def test_unfinished_answers_are_no_lessons(tmp_path: Path) -> None:
    write_round(tmp_path / "round-01", {"one": [RIGHT, WRONG, WRONG]})
    texts = [rollout("one", 0, sample, "right") | {"finish_reason": "length"} for sample in range(3)]
    other = tmp_path / "other"
    write_stage(other / "sample", {"rollouts": (ROLLOUTS, texts)})
    for name in ("score", "select_prompts"):
        (other / name).symlink_to(tmp_path / "round-01" / name)
    (found,) = practised([other], answers=True)
    assert (found.tried, found.solved, found.right) == (3, 1, [])


def test_rounds_and_nights_in_order(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"2026-11-10/round-{number:02d}/refill-1").mkdir(parents=True)
    names = [str(folder.relative_to(tmp_path / "2026-11-10")) for folder in rounds_of(tmp_path / "2026-11-10", 2)]
    assert names == ["round-01", "round-01/refill-1", "round-02", "round-02/refill-1"]
    for day in range(11, 20):
        (tmp_path / f"2026-11-{day}/round-01").mkdir(parents=True)
    assert [folder.parent.name for folder in earlier_rounds(tmp_path, "2026-11-19", "starter")] == [
        f"2026-11-{day}" for day in range(12, 19)
    ]
    for day in (17, 18):
        settings = ("name=another",) if day == 18 else ()
        (tmp_path / f"2026-11-{day}/config.yaml").write_text(frozen_yaml(load_night(STARTER, settings)))
    assert [folder.parent.name for folder in earlier_rounds(tmp_path, "2026-11-19", "starter")] == [
        f"2026-11-{day}" for day in range(11, 18)
    ]
