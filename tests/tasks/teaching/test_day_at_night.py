"""The day copy at night: when a night begins with it, what is asked again, and that none of it is taught twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from conf.load import STARTER, load_night
from conf.schema import EngineConfig, NightConfig, StudentConfig
from models.hf.checkpoint import base_of, keep, learned, parent_of, write_lineage
from models.lessons.preference_data import is_held_out
from tasks.journal.tables import CORRECTIONS
from tasks.rollouts.verified import Player
from tasks.stage import Artifact
from tasks.teaching.day_at_night import ask_again, choose_start, replay_day
from tasks.teaching.day_learner import DayLearner
from tasks.teaching.lessons import lessons_without
from tasks.training import trainer_process
from tests.models.support.tiny import write_tiny
from tests.tasks.doubles import journals
from tests.tasks.doubles.exam import TableEngine, taken_quiz
from tests.tasks.doubles.picks import ranking
from tests.tasks.doubles.tables import correction, run_stage, write_stage
from tests.tasks.doubles.workers import InProcessWorker

DATE = journals.DAYS[0]


@pytest.fixture
def config() -> NightConfig:
    return load_night(STARTER, ["teach.step_nats=1", "teach.kl_per_lesson=0.5", "engine.max_model_len=100"])


def questions(config: NightConfig, *, held_out: bool) -> list[list[dict[str, str]]]:
    """Two conversations that the night holds out, or teaches."""
    asked = [[{"role": "user", "content": f"What is {number}?"}] for number in range(50)]
    return [messages for messages in asked if is_held_out(messages, config.unseen_share) is held_out][:2]


def taught(home: Path, config: NightConfig) -> Path:
    """A home with a champion, and its classroom's lines of an evening; the champion's folder."""
    draft = write_tiny(home / "checkpoints" / "new")
    write_lineage(draft, None)
    asked, judges = questions(config, held_out=False), questions(config, held_out=True)
    lines: list[tuple[str, dict[str, Any]]] = [
        ("praise", {"messages": asked[0], "live": True}),
        ("correct", {"messages": asked[1], "live": True}),
        ("later", {"messages": asked[1], "live": False}),
        ("judge", {"messages": judges[0], "live": True}),
    ]
    for name, fields in lines:
        said = {"response": "So so.", "correction": f"{name}."}
        journals.journal(home, journals.line("correction", lesson=name, **said, **fields), name=f"{DATE}.jsonl")
    journals.journal(home, journals.corrected("by another program"), name=f"{DATE}.jsonl")
    return keep(draft, draft.parent)


def replayed(home: Path, champion: Path, config: NightConfig) -> Artifact:
    day = journals.freeze(home, DATE, start=champion.name, unseen_share=config.unseen_share)
    return run_stage(
        replay_day,
        home / "nights" / DATE / "replay_day",
        day=day,
        champion=champion,
        config=config,
        teach=config.teach,
        journal=home / "journal",
        checkpoints=home / "checkpoints",
        trainer=InProcessWorker(),
    )


def test_it_is_the_classrooms_day_copy_and_can_be_merged(tmp_path: Path, config: NightConfig) -> None:
    champion = taught(tmp_path, config)
    day = replayed(tmp_path, champion, config)
    assert day.read_json("day.json") == {"lessons": 2, "learned": 2}
    adapter = tmp_path / "checkpoints" / (day.folder / "checkpoint.txt").read_text()
    assert (base_of(adapter), parent_of(adapter)) == (champion, champion.name)
    classroom = DayLearner(champion, config)
    lessons = lessons_without(champion, tmp_path / "journal")
    for lesson in lessons[:2]:
        classroom.learn(lesson.name, lesson.entries)
    kept = load_file(adapter / "adapter_model.safetensors")
    for name, tensor in classroom.day.adapter.items():
        assert kept[f"base_model.model.{name.replace('.default.', '.')}"].equal(tensor), name
    merged = trainer_process.merge(adapter, adapter.parent, trust_remote_code=False)
    assert parent_of(merged) == adapter.name
    assert learned(merged) == frozenset().union(*(lesson.names for lesson in lessons[:2]))
    left = [lesson.name for lesson in lessons_without(merged, tmp_path / "journal")]
    assert left == ["later", "judge"]  # a night that begins with it teaches the others no more


def test_without_lessons_by_day_the_champion_stays_as_it_is(tmp_path: Path, config: NightConfig) -> None:
    champion = taught(tmp_path, config)
    file = tmp_path / "journal" / f"{DATE}.jsonl"
    file.write_text(file.read_text().replace('"live": true', '"live": false'))
    day = replayed(tmp_path, champion, config)
    assert (day.folder / "checkpoint.txt").read_text() == champion.name
    assert day.read_json("day.json")["lessons"] == 0


# --- beginning with it, and asking again


def chosen(folder: Path, right: int | None, solved: int | None, refused: str = "") -> dict[str, Any]:
    """`right`: of 12 held-out picks. `solved`: of 40 quiz problems, of which the champion solves 20."""
    count = 3 if right is None else 12
    choose_start.write(
        folder,
        champion=taken_quiz(folder / "quiz-champion", 20, 40),
        day=None if solved is None else taken_quiz(folder / "quiz-day", solved, 40),
        champion_picks=ranking(folder / "champion", [False] * count),
        day_picks=ranking(folder / "day", [number < (right or 3) for number in range(count)]),
        alpha=0.025,
        refused=refused,
    )
    return json.loads((folder / "start.json").read_text())


@pytest.mark.parametrize(
    ("right", "solved", "begins", "reason"),
    [
        (10, 20, True, "in 10 of 10 conversations (p = 0.0010), and ranks it first in 10 of 12"),
        (10, None, True, "in 10 of 10 conversations"),  # the night has no quizzes
        (3, 20, False, "not enough"),
        (10, 15, True, "in 10 of 10 conversations"),  # p = 1/32
        (10, 14, False, "In the quiz it does worse than the champion (p = 0.0156)."),
        (None, 20, False, "too few held-out picks"),
    ],
)
def test_to_begin_with_it_must_be_earned(
    tmp_path: Path, right: int | None, solved: int | None, begins: bool, reason: str
) -> None:
    found = chosen(tmp_path, right, solved)
    assert found["day"] is begins
    assert reason in " ".join(found["reasons"])


def test_a_ranking_that_failed_is_not_called_too_few_picks(tmp_path: Path) -> None:
    picks: dict[str, Any] = {"champion_picks": ranking(tmp_path / "champion", [False] * 12), "day_picks": None}
    choose_start.write(tmp_path, champion=None, day=None, alpha=0.025, **picks)
    found = json.loads((tmp_path / "start.json").read_text())
    assert found == {"day": False, "reasons": ["The held-out picks were not ranked."]}


def test_it_says_why_there_is_no_day_copy(tmp_path: Path) -> None:
    assert chosen(tmp_path, 12, 20, "The merge is wrong.") == {"day": False, "reasons": ["The merge is wrong."]}


def test_corrected_questions_are_asked_again(tmp_path: Path, student: Path) -> None:
    """Only those that it has learned, and that fit."""
    rows = [correction(asked, "no", "An owl.", lesson=asked) for asked in ("Who?", "left for later", "W" * 99)]
    day = write_stage(tmp_path / "freeze_journal", {"corrections": (CORRECTIONS, rows)})
    engine: Any = TableEngine(student, {"Who?": " A hen.\n"})
    player = Player(student, StudentConfig(), EngineConfig(max_model_len=64), engine, 8)
    ask_again.write(tmp_path, day=day, lessons=("Who?", "W" * 99), player=player)
    found = json.loads((tmp_path / "answers.json").read_text())
    assert found == [{"question": "Who?", "correction": "An owl.", "answer": "A hen."}]
