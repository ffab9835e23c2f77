"""Feedback lessons: which method learns which lines, what the stage writes, and that it is reproducible."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from models.hf.checkpoint import is_intact, keep, learned, write_learned, write_lineage
from models.lessons import sft_preference
from models.lessons.pace import TIMED, Pace
from models.trainer import Trainer
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.stage import Artifact
from tasks.training import feedback as train
from tasks.training import trainer_process
from tests.models.support.tiny import trainer_config, write_tiny
from tests.tasks.doubles import journals
from tests.tasks.doubles.journals import DAYS
from tests.tasks.doubles.tables import correction, feedback, preference, run_stage, write_stage
from tests.tasks.doubles.workers import InProcessWorker

LESSONS: dict[str, tuple[LessonConfig, str]] = {
    "corrections": (CorrectionsConfig(), "dpo"),
    "words": (WordsConfig(), "imitation"),
    "feedback": (FeedbackConfig(), "kto"),
    "preferences": (PicksConfig(epochs=1, batch_size=8), "dpo"),
}
ASKED = "How are you?"


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "WORDS_TOKENS", 8)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    draft = write_tiny(tmp_path / "checkpoints" / "new")
    write_lineage(draft, None)
    return keep(draft, draft.parent)


def day(folder: Path, lines: int) -> Artifact:
    """Return a frozen day with this many lines of each kind."""
    tables = {
        "corrections": (CORRECTIONS, [correction(ASKED, "Bad.", f"Fine {n}.") for n in range(lines)]),
        "words": (WORDS, [{"text": f"The owner has {n} books and reads."} for n in range(lines)]),
        "feedback": (FEEDBACK, [feedback(ASKED, f"Well {n}.", n % 2 - 0.5) for n in range(lines)]),
        "preferences": (
            PREFERENCES,
            [preference(ASKED, ["Fine.", "So so.", "Who asks?"], n % 3) for n in range(lines)],
        ),
    }
    return write_stage(folder, tables)


def study(
    folder: Path, name: str, base: Path, lines: int = 5, pace: Pace | None = None, frozen: Artifact | None = None
) -> tuple[Path, Any, Any, int]:
    """Run a stage. Return its checkpoint, counts and curve, and the number of calls to the trainer's process."""
    trainer = InProcessWorker()
    written = run_stage(
        train.feedback_lesson,
        folder / name,
        day=frozen or day(folder / "freeze_journal", lines),
        checkpoint=base,
        config=LESSONS[name][0],
        trainer_config=trainer_config(kl_coefficient=0.02),
        student=StudentConfig(),
        exam_questions=(),
        max_tokens=100,
        pace=pace,
        checkpoints=base.parent,
        trainer=trainer,
    )
    checkpoint = base.parent / (written.folder / "checkpoint.txt").read_text()
    return checkpoint, written.read_json("counts.json"), written.read_json("curve.json"), len(trainer.functions)


def test_a_lesson_is_reproducible(tmp_path: Path, base: Path) -> None:
    taught, counts, curve, _ = study(tmp_path / "first", "corrections", base)
    assert taught != base
    assert is_intact(taught)
    assert (counts["lines"], counts["used"]) == (5, 5)
    assert [metrics["step"] for metrics in curve] == [float(n) for n in range(1, len(curve) + 1)]
    assert all(metrics["grad_norm"] > 0 for metrics in curve)
    assert len(curve) > 1
    assert trainer_process._trainer is None  # its memory is released
    again = study(tmp_path / "again", "corrections", base)
    assert (again[0], again[2]) == (taught, curve)


@pytest.mark.parametrize("name", LESSONS)
def test_each_kind_has_its_method(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    used: list[tuple[str, int]] = []
    for method in ("imitation", "kto", "dpo"):

        def learn(
            _: Trainer, examples: Any, config: Any, seed: int, pace: Any, method: str = method
        ) -> Iterator[dict[str, float]]:
            assert (config, seed) == (LESSONS[name][0], trainer_config().seed)
            used.append((method, len(examples)))
            yield {"step": 1.0, "kl": 0.2}

        monkeypatch.setattr(sft_preference, method, learn)
    _, counts, curve, _ = study(tmp_path, name, base)
    ((method, examples),) = used
    assert method == LESSONS[name][1]
    assert examples >= counts["used"] == 5
    assert curve == [{"step": 1.0, "kl": 0.2}]


@pytest.mark.parametrize("name", LESSONS)
def test_without_lines_the_checkpoint_stays_the_same(tmp_path: Path, name: str) -> None:
    checkpoint, counts, curve, calls = study(tmp_path, name, tmp_path / "checkpoints" / "base", lines=0)
    assert checkpoint.name == "base"
    assert (counts, curve, calls) == ({"lines": 0, "used": 0, "exam": 0, "too_long": 0, "later": 0}, [], 0)


@pytest.mark.parametrize("name", LESSONS)
def test_a_checkpoint_knows_what_it_has_learned_and_learns_only_the_rest(tmp_path: Path, base: Path, name: str) -> None:
    write_learned(base, ["before", f"{name} 2"])
    learned_all, counts, _, _ = study(tmp_path / "once", name, base, lines=3)
    assert (counts["lines"], counts["later"]) == (2, 0)
    assert learned(learned_all) == {"before", *(f"{name} {number}" for number in (1, 2, 3))}
    same, counts, _, calls = study(tmp_path / "twice", name, learned_all, lines=3)
    assert (same, counts["lines"], calls) == (learned_all, 0, 0)


@pytest.mark.parametrize(("name", "taught"), [("corrections", 8), ("words", 3), ("preferences", 16)])
def test_a_night_teaches_only_so_many_steps_of_a_channel_and_the_oldest_lines_first(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, name: str, taught: int
) -> None:
    """Two steps of eight: four corrections twice each make a step. Each text has five pieces: the fourth waits."""
    monkeypatch.setattr(train, "MOST_STEPS", 2)
    checkpoint, counts, curve, _ = study(tmp_path / "tonight", name, base, lines=50)
    assert len(curve) == 2
    assert learned(checkpoint) == {f"{name} {number}" for number in range(1, taught + 1)}
    assert counts["later"] == 50 - taught


def test_two_students_on_one_home_do_not_take_each_others_lessons(tmp_path: Path, base: Path) -> None:
    """Ten picks, a night of another student, a night of the first, a rollback, and a line that is edited."""
    other = keep(write_tiny(tmp_path / "checkpoints" / "other", "qwen3"), base.parent)
    for number in range(10):
        asked = [{"role": "user", "content": f"{number}?"}]
        said = {"messages": asked, "responses": ["yes", "no"], "chosen": 0, "policy": "x"}
        file = journals.journal(tmp_path, journals.line("preference", **said))

    def night(date: str, student: Path) -> tuple[Path, int]:
        frozen = journals.freeze(tmp_path, date, start=student.name)
        checkpoint, counts, _, _ = study(tmp_path / "nights" / date, "preferences", student, frozen=frozen)
        return checkpoint, counts["used"]

    theirs, taught = night(DAYS[0], other)
    assert (taught, len(learned(theirs))) == (10, 10)
    ours, taught = night(DAYS[1], base)
    assert (taught, learned(ours)) == (10, learned(theirs))
    assert night(DAYS[2], ours) == (ours, 0)
    assert night(DAYS[3], base) == (ours, 10)  # after a rollback
    file.write_text(file.read_text().replace('"chosen": 0', '"chosen": 1', 1))
    assert night(DAYS[4], ours)[1] == 1


def test_what_a_pace_cuts_off_is_not_learned(tmp_path: Path, base: Path) -> None:
    pace = Pace(0.0, tmp_path / "pace.json")
    checkpoint, counts, curve, _ = study(tmp_path / "tonight", "feedback", base, lines=40, pace=pace)
    assert len(curve) == TIMED
    assert (len(learned(checkpoint)), counts["later"]) == (16, 24)
