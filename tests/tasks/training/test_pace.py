"""A lesson whose number of steps was fixed comes to the same checkpoint when it begins again, and on two processes."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from conf.sections.lessons import DistillConfig
from models.lessons.pace import Pace, read_steps
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.training import helpers, trainer_process
from tests.models.support.tiny import trainer_config

LESSON = DistillConfig(steps=8, batch_size=2, learning_rate=0.01, schedule="linear")


@pytest.fixture(autouse=True)
def _alone_again() -> Iterator[None]:
    yield
    helpers.end()
    trainer_process._let_go()


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_lesson_that_was_killed_comes_to_the_same_bits(
    tmp_path: Path, student: Path, rollouts: list[Rollout], monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    (tmp_path / "base").symlink_to(student)
    examples = [(rollout.prompt_token_ids, rollout.token_ids) for rollout in rollouts]
    two_lanes = trainer_config(microbatch_tokens=8).model_copy(update={"lanes": 2})

    def lesson(file: str, processes: int) -> tuple[str, int]:
        """Return the checkpoint's digest and the steps taken; a step of the deciding process takes one second."""
        monkeypatch.setattr("models.lessons.pace.time.perf_counter", map(float, count()).__next__)
        config = two_lanes.model_copy(update={"processes": processes})
        pace = Pace(5.5, tmp_path / file)
        checkpoint, curve = trainer_process.lesson(tmp_path / "base", config, LESSON, examples, tmp_path, pace)
        return checkpoint.name, len(curve)

    undisturbed = lesson("undisturbed.json", 1)
    assert undisturbed[1] == 5

    class PowerCutError(Exception):
        pass

    imitate, steps = Trainer.imitate, iter(range(3))

    def three_steps(*arguments: object) -> dict[str, float]:
        if next(steps, None) is None:
            raise PowerCutError
        return imitate(*arguments)  # pyright: ignore

    with monkeypatch.context() as cut:
        cut.setattr(Trainer, "imitate", three_steps)
        with pytest.raises(PowerCutError):
            lesson("killed.json", processes)
    fixed = read_steps(tmp_path / "killed.json")
    assert fixed is not None
    assert fixed.steps == 5
    monkeypatch.setattr("models.lessons.pace.time.sleep", pytest.fail)  # nobody waits for what is written
    assert lesson("killed.json", processes) == undisturbed
