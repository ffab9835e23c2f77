"""The teacher's advantages: one per token, and the figures over them."""

import dataclasses
import math
from pathlib import Path

import pytest

from conf.sections.stages import OnPolicyConfig
from conf.storage.home import InputError
from models.lessons.on_policy_distillation import teacher_logprobs
from models.rollout import Rollout
from tasks.rollouts.teacher_advantages import add_teacher, find_teacher
from tasks.stage import Artifact
from tasks.tables import ADVANTAGES, ROLLOUTS, completion_key
from tasks.training.update import read_advantages
from tests.models.support.tiny import sampled_groups, trainer_config, write_tiny
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import run_stage, write_stage
from tests.tasks.doubles.workers import InProcessWorker

TEMPERATURE = 1.3
CONFIG = trainer_config(temperature=TEMPERATURE)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("teacher") / "teacher", "qwen3")  # another shape, the same tokens


def credited(folder: Path, rollouts: list[Rollout], teacher: Path, earned: list[float | None]) -> Artifact:
    rows = [completion_key(one) | {"advantage": own} for one, own in zip(rollouts, earned, strict=True)]
    return run_stage(
        add_teacher,
        folder / "teacher",
        rollouts=write_stage(folder / "sample", {"rollouts": (ROLLOUTS, map(dataclasses.asdict, rollouts))}),
        advantages=write_stage(folder / "credit", {"advantages": (ADVANTAGES, rows)}),
        config=OnPolicyConfig(teacher=str(teacher), weight=0.5, reward_weight=2),
        trainer_config=CONFIG,
        teacher=teacher,
        trainer=InProcessWorker(),
    )


def test_every_token_has_an_advantage(tmp_path: Path, teacher: Path) -> None:
    rollouts = sampled_groups(teacher, [[4, 1], [2, 5], [3, 3]])
    unknown, empty = rollouts[1], rollouts[2]
    rollouts[1] = dataclasses.replace(unknown, sampler_logprobs=[math.nan])
    rollouts[2] = dataclasses.replace(empty, token_ids=[], sampler_logprobs=[], loss_mask=[])
    artifact = credited(tmp_path, rollouts, teacher, [0.25, -0.25, 0.0, 0.0, None, None])
    found = read_advantages(artifact.folder)
    scored = teacher_logprobs(teacher, CONFIG, rollouts, TEMPERATURE)
    assert scored[0] != teacher_logprobs(teacher, CONFIG, rollouts)[0]
    nats = [
        [q - p for q, p in zip(*both, strict=True)]
        for both in zip(scored, (one.sampler_logprobs for one in rollouts), strict=True)
    ]
    for row, own in ((0, 0.25), (3, 0.0)):
        expected = [2 * own + 0.5 * one for one in nats[row]]
        assert found[rollouts[row].group, rollouts[row].sample] == pytest.approx(expected)
    assert [math.isnan(value) for value in found[0, 1]] == [True]
    assert found[1, 0] == []
    assert all(math.isnan(found[2, sample]) for sample in (0, 1))  # ungraded
    assert artifact.read_json("signal.json") == {"groups": 3, "with_signal": 2}
    known = [one for row in (0, 3, 4, 5) for one in nats[row]]
    assert artifact.read_json("teacher.json") == {"tokens": 15, "kl": pytest.approx(-sum(known) / 15)}


def test_a_group_without_a_token_has_no_signal(tmp_path: Path, teacher: Path) -> None:
    rollouts = [
        dataclasses.replace(one, token_ids=[], sampler_logprobs=[], loss_mask=[])
        for one in sampled_groups(teacher, [[1, 1]])
    ]
    artifact = credited(tmp_path, rollouts, teacher, [0.0, 0.0])
    assert artifact.read_json("signal.json") == {"groups": 1, "with_signal": 0}
    assert artifact.read_json("teacher.json") == {"tokens": 0, "kl": 0.0}


def test_a_teacher_has_the_students_tokenizer(tmp_path: Path, teacher: Path) -> None:
    assert find_teacher(OnPolicyConfig(teacher=str(teacher)), teacher, False) == teacher
    with pytest.raises(InputError, match="^on_policy.teacher: /nowhere"):
        find_teacher(OnPolicyConfig(teacher="/nowhere"), teacher, False)
    other = write_student(tmp_path / "other")
    with pytest.raises(InputError, match="^on_policy.teacher: .*tokenizer"):
        find_teacher(OnPolicyConfig(teacher=str(other)), teacher, False)
