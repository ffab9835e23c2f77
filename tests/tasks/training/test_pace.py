"""A lesson whose number of steps was fixed comes to the same checkpoint when it begins again."""

from itertools import count
from pathlib import Path

import pytest

from conf.sections.lessons import DistillConfig
from models.lessons.pace import Pace, fix_steps, paced, read_steps
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.training import trainer_process
from tests.models.support.tiny import trainer_config

LESSON = DistillConfig(steps=8, batch_size=2, learning_rate=0.01, schedule="linear")


def test_a_recorded_number_of_steps_stands_unless_the_time_left_is_too_short(tmp_path: Path) -> None:
    pace = Pace(10.0, tmp_path / "pace.json")
    assert fix_steps(pace, 20, 1.0).steps == 10
    assert fix_steps(pace, 20, 2.0).steps == 10  # as it was before the interruption, on a machine that is slower now
    assert fix_steps(pace.within(7.5), 20, 2.0).steps == 7
    assert fix_steps(pace, 20, 1.0).steps == 7
    assert fix_steps(pace.within(-1.0), 20, 1.0).steps == 2


def test_the_step_that_is_timed_counts_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half as long as most, the second step takes a second: the others take two."""
    monkeypatch.setattr("models.lessons.pace.time.perf_counter", map(float, count()).__next__)
    sizes = [3.0, 1.0, *[2.0] * 10]
    assert len(list(paced(sizes, Pace(9.0, tmp_path / "pace.json"), size=float))) == 4


def test_a_lesson_that_was_killed_comes_to_the_same_bits(
    tmp_path: Path, tiny_student: Path, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base").symlink_to(tiny_student)
    examples = [(rollout.prompt_token_ids[:2], rollout.token_ids[:1]) for rollout in rollouts]  # equally long
    config = trainer_config(microbatch_tokens=8)

    def lesson(file: str) -> tuple[str, int]:
        """Return the checkpoint's digest and the steps taken; a step takes one second."""
        monkeypatch.setattr("models.lessons.pace.time.perf_counter", map(float, count()).__next__)
        pace = Pace(5.5, tmp_path / file)
        checkpoint, curve = trainer_process.lesson(tmp_path / "base", config, LESSON, examples, tmp_path, pace)
        return checkpoint.name, len(curve)

    undisturbed = lesson("undisturbed.json")
    assert undisturbed[1] == 5

    class PowerCutError(Exception):
        pass

    imitate, steps = Trainer.imitate, iter(range(3))

    def three_steps(*arguments: object) -> dict[str, float]:
        if next(steps, None) is None:
            raise PowerCutError
        return imitate(*arguments)

    with monkeypatch.context() as cut:
        cut.setattr(Trainer, "imitate", three_steps)
        with pytest.raises(PowerCutError):
            lesson("killed.json")
    fixed = read_steps(tmp_path / "killed.json")
    assert fixed is not None
    assert fixed.steps == 5
    assert lesson("killed.json") == undisturbed
