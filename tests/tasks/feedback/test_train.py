"""The feedback stages: which method learns which lines, what a stage writes, and that it is reproducible."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from models.checkpoint import is_intact, keep, write_lineage
from models.lessons import sft_preference
from models.trainer import Trainer
from tasks.feedback import train
from tasks.stage import Artifact, Stage
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.training import trainer_process
from tests.models.support.tiny import trainer_config, write_tiny
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

STAGES: dict[str, tuple[Stage, LessonConfig, str]] = {
    "corrections": (train.corrections, CorrectionsConfig(), "imitation"),
    "words": (train.words, WordsConfig(max_tokens=8), "imitation"),
    "feedback": (train.feedback, FeedbackConfig(), "kto"),
    "dpo": (train.picks, PicksConfig(), "dpo"),
    "best_of_n": (train.picks, PicksConfig(method="best_of_n"), "imitation"),
}
DAY = "2026-11-20.jsonl"
PROMPT = json.dumps([{"role": "user", "content": "How are you?"}])


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    draft = write_tiny(tmp_path / "checkpoints" / "new")
    write_lineage(draft, None)
    yield keep(draft, draft.parent)
    trainer_process._let_go()


def day(folder: Path, lines: int, learnt: int) -> Artifact:
    """Return a frozen day with this many lines of each kind; the champion has learnt the first `learnt` of them."""
    corrections: list[dict[str, Any]] = [
        {"messages": PROMPT, "response": "Bad.", "correction": f"Fine {n}."} for n in range(lines)
    ]
    words = [{"text": f"The owner has {n} books and reads."} for n in range(lines)]
    feedback = [{"messages": PROMPT, "response": f"Well {n}.", "value": n % 2 - 0.5} for n in range(lines)]
    responses = json.dumps(["Fine.", "So so.", "Who asks?"])
    picks: list[dict[str, Any]] = [
        {"messages": PROMPT, "responses": responses, "chosen": n % 3, "policy": "x"} for n in range(lines)
    ]
    for row in (*picks[:learnt], *corrections[:learnt]):
        row["learnt"] = True
    for rows in (corrections, words, feedback, picks):
        for number, row in enumerate(rows, 1):
            row["source"] = f"{DAY}:{number}"
    tables = {"corrections": corrections, "words": words, "feedback": feedback, "preferences": picks}
    schemas = {"corrections": CORRECTIONS, "words": WORDS, "feedback": FEEDBACK, "preferences": PREFERENCES}
    return write_stage(folder, {name: (schemas[name], rows) for name, rows in tables.items()})


def study(
    folder: Path, name: str, base: Path, lines: int = 5, learnt: int = 0, by_day: tuple[str, ...] = ()
) -> tuple[Path, Any, Any, int]:
    """Run a stage. Return its checkpoint, counts and curve, and the number of calls to the trainer's process."""
    stage, config, _ = STAGES[name]
    trainer, stage_folder = InProcessWorker(), folder / name
    stage_folder.mkdir(parents=True)
    arguments: dict[str, Any] = {
        "day": day(folder / "freeze_journal", lines, learnt),
        "checkpoint": base,
        "trainer_config": trainer_config(kl_coefficient=0.02),
        "student": StudentConfig(),
        "exam_questions": (),
        "unseen_share": 0.0,
        "max_tokens": 100,
        "by_day": by_day,
        "checkpoints": base.parent,
        "trainer": trainer,
    }
    stage.write(stage_folder, config=config, **arguments)
    written = Artifact(folder=stage_folder, digest="")
    checkpoint = base.parent / (stage_folder / "checkpoint.txt").read_text()
    return checkpoint, written.read_json("counts.json"), written.read_json("curve.json"), len(trainer.functions)


def test_a_lesson_is_reproducible_and_rounds_its_weights_after_each_step(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded: list[int] = []
    unpatched = Trainer.round_stochastically
    monkeypatch.setattr(Trainer, "round_stochastically", lambda t: rounded.append(t.step) or unpatched(t))
    learnt, counts, curve, _ = study(tmp_path / "first", "corrections", base)
    assert learnt != base
    assert is_intact(learnt)
    assert (counts["lines"], counts["used"]) == (5, 5)
    assert [metrics["step"] for metrics in curve] == [float(n) for n in range(1, len(curve) + 1)]
    assert all(metrics["grad_norm"] > 0 for metrics in curve)
    assert rounded == [*range(1, len(curve) + 1)]
    assert len(rounded) > 1
    assert trainer_process._trainer is None  # its memory is released
    again = study(tmp_path / "again", "corrections", base)
    assert (again[0], again[2]) == (learnt, curve)


@pytest.mark.parametrize("name", STAGES)
def test_each_kind_is_learnt_by_its_method(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    used: list[tuple[str, int]] = []
    for method in ("distill", "imitation", "kto", "dpo"):

        def learn(
            _: Trainer, examples: Any, config: Any, seed: int, method: str = method
        ) -> Iterator[dict[str, float]]:
            assert (config, seed) == (STAGES[name][1], trainer_config().seed)
            used.append((method, len(examples)))
            yield {"step": 1.0}

        monkeypatch.setattr(sft_preference, method, learn)
    monkeypatch.setattr(Trainer, "round_stochastically", lambda trainer: None)
    _, counts, curve, _ = study(tmp_path, name, base)
    ((method, examples),) = used
    assert method == STAGES[name][2]
    assert examples >= counts["used"] == 5
    assert curve == [{"step": 1.0}]


@pytest.mark.parametrize("name", STAGES)
def test_without_lines_the_checkpoint_stays_the_same(tmp_path: Path, name: str) -> None:
    checkpoint, counts, curve, calls = study(tmp_path, name, tmp_path / "checkpoints" / "base", lines=0)
    assert checkpoint.name == "base"
    assert (counts, curve, calls) == ({"lines": 0, "used": 0, "exam": 0, "too_long": 0}, [], 0)


@pytest.mark.parametrize("name", ["corrections", "dpo", "best_of_n"])
def test_lines_that_the_champion_has_learnt_are_not_learnt_again(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(trainer_process, "study", lambda checkpoint, *_: (checkpoint, []))
    _, counts, _, calls = study(tmp_path / "some", name, base, learnt=3)
    assert (counts["lines"], counts["used"], calls) == (2, 2, 1)
    _, counts, _, calls = study(tmp_path / "all", name, base, learnt=5)
    assert (counts["lines"], calls) == (0, 0)
    _, counts, _, calls = study(tmp_path / "by day", name, base, by_day=(f"{DAY}:2", f"{DAY}:3"))
    assert (counts["lines"], calls) == (3, 1)
