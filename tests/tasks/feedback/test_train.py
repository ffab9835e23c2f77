"""The channels' stages: what they hand to the trainer, what they write, and that they come to the same bits again."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import CorrectionsConfig, FeedbackConfig, LessonConfig, PicksConfig, WordsConfig
from models.checkpoint import is_whole, keep, write_lineage
from models.trainer import Trainer
from tasks.feedback import train, trainer_calls
from tasks.stage import Artifact, Stage
from tasks.tables import CORRECTIONS, FEEDBACK, PREFERENCES, WORDS
from tasks.training import trainer_process
from tests.models.tiny import trainer_config, write_tiny
from tests.tasks.doubles.tables import write_stage


class Here:
    """A trainer's process that is this one."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.asked.append(function)
        return function(*arguments)


CHANNELS: dict[str, tuple[Stage, LessonConfig, Any]] = {
    "corrections": (train.corrections, CorrectionsConfig(), trainer_calls.imitate),
    "words": (train.words, WordsConfig(max_tokens=8), trainer_calls.imitate),
    "feedback": (train.feedback, FeedbackConfig(), trainer_calls.kto),
    "dpo": (train.picks, PicksConfig(), trainer_calls.dpo),
    "best_of_n": (train.picks, PicksConfig(method="best_of_n"), trainer_calls.imitate),
}
ASKED = json.dumps([{"role": "user", "content": "How are you?"}])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lessons") / "checkpoints"
    draft = write_tiny(folder / "new")
    write_lineage(draft, None)
    return keep(draft, folder)


@pytest.fixture(autouse=True)
def _left_as_it_was() -> Iterator[None]:
    yield
    trainer_process._trainer, trainer_process._held = None, None


def day(folder: Path, lines: int = 5, learnt: int = 0) -> Artifact:
    """So many lines of each channel; the first ones of those that the reward model takes too are `learnt` already."""
    corrections = [{"messages": ASKED, "response": "Bad.", "correction": f"Fine {n}."} for n in range(lines)]
    words = [{"text": f"The owner has {n} books and reads."} for n in range(lines)]
    feedback = [{"messages": ASKED, "response": f"Well {n}.", "value": n % 2 - 0.5} for n in range(lines)]
    responses = json.dumps(["Fine.", "So so.", "Who asks?"])
    picks = [{"messages": ASKED, "responses": responses, "chosen": n % 3, "policy": "x"} for n in range(lines)]
    for row in (*picks[:learnt], *corrections[:learnt]):
        row["learnt"] = True
    return write_stage(
        folder,
        {
            "corrections": (CORRECTIONS, corrections),
            "words": (WORDS, words),
            "feedback": (FEEDBACK, feedback),
            "preferences": (PREFERENCES, picks),
        },
    )


def study(folder: Path, channel: str, base: Path, lines: int = 5, learnt: int = 0) -> tuple[Path, Any, Any, list[Any]]:
    """Runs a channel's stage. Returns its checkpoint, counts and curve, and what the trainer's process was asked."""
    stage, config, _ = CHANNELS[channel]
    trainer, place = Here(), folder / channel
    place.mkdir(parents=True)
    arguments: dict[str, Any] = {
        "day": day(folder / "freeze_journal", lines, learnt),
        "checkpoint": base,
        "trainer_config": trainer_config(kl_coefficient=0.02),
        "student": StudentConfig(),
        "exam_questions": (),
        "unseen_share": 0.0,
        "max_tokens": 100,
        "checkpoints": base.parent,
        "trainer": trainer,
    }
    stage.write(place, config=config, **arguments)
    written = Artifact(folder=place, digest="")
    after = base.parent / (place / "checkpoint.txt").read_text()
    return after, written.read_json("counts.json"), written.read_json("curve.json"), trainer.asked


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_channel_comes_to_another_checkpoint_and_to_the_same_one_again(
    tmp_path: Path, base: Path, channel: str
) -> None:
    learnt, counts, curve, asked = study(tmp_path / "first", channel, base)
    assert learnt != base
    assert is_whole(learnt)
    assert asked == [CHANNELS[channel][2]]
    assert (counts["lines"], counts["used"]) == (5, 5)
    assert [one["step"] for one in curve] == [float(n) for n in range(1, len(curve) + 1)]
    assert all(one["grad_norm"] > 0 for one in curve)
    assert trainer_process._trainer is None  # its memory is given back
    again = study(tmp_path / "again", channel, base)
    assert (again[0], again[2]) == (learnt, curve)


def test_a_lesson_is_settled_after_each_step(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settled at its end alone it would be a step that no gradient has seen."""
    at: list[int] = []
    monkeypatch.setattr(Trainer, "settle", lambda trainer: at.append(trainer.step))
    _, _, curve, _ = study(tmp_path, "corrections", base)
    assert at == [*range(1, len(curve) + 1)]
    assert len(at) > 1


@pytest.mark.parametrize("channel", CHANNELS)
def test_without_lines_the_checkpoint_stays_what_it_was(tmp_path: Path, channel: str) -> None:
    learnt, counts, curve, asked = study(tmp_path, channel, tmp_path / "checkpoints" / "base", lines=0)
    assert learnt.name == "base"
    assert (counts, curve, asked) == ({"lines": 0, "used": 0, "exam": 0, "too_long": 0}, [], [])


@pytest.mark.parametrize("channel", ["corrections", "dpo", "best_of_n"])
def test_what_the_champion_has_learnt_is_no_lesson_again(tmp_path: Path, base: Path, channel: str) -> None:
    _, counts, _, asked = study(tmp_path / "some", channel, base, learnt=3)
    assert (counts["lines"], counts["used"], len(asked)) == (2, 2, 1)
    after, counts, _, asked = study(tmp_path / "all", channel, base, learnt=5)
    assert (after, counts["lines"], asked) == (base, 0, [])
