"""Advantages for on-policy distillation: a teacher scores each token that the student sampled."""

import json
from pathlib import Path
from statistics import fmean

from conf.schema import TrainerConfig
from conf.sections.stages import OnPolicyConfig
from models.hf.loading import check_tokenizers
from tasks.registry.import_model import find_model
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, completion_key, write_table
from tasks.training import trainer_process
from tasks.workers.worker import Worker

TEACHER = "teacher.json"


@stage(retries=2, resources=("teacher", "trainer"))
def credit_by_teacher(
    folder: Path,
    *,
    rollouts: Artifact,
    config: OnPolicyConfig,
    trainer_config: TrainerConfig,
    teacher: Path,
    trainer: Worker,
) -> None:
    """Write every token's advantage: the teacher's log-probability minus the student's, clamped to ±20 nats.

    The student's log-probabilities come from the sampler and differ from the trainer's by hundredths of a nat; the loss
    corrects for that. `advantage` is the mean over a completion's tokens. `signal.json` counts all groups, and those
    with signal, which have at least one token to train on. `teacher.json` has the number of tokens and their mean
    negated advantage (`kl`), an estimate of KL(student‖teacher) in nats. `teacher`: the folder of the teacher model.
    """
    from models.lessons.on_policy_distillation import token_advantages  # loads models

    sampled = sampled_rollouts(rollouts)
    temperature = trainer_config.grpo.temperature
    scored = trainer.call(trainer_process.teacher_logprobs, teacher, trainer_config, sampled, temperature)
    advantages = [
        token_advantages(rollout.sampler_logprobs, logprobs) for rollout, logprobs in zip(sampled, scored, strict=True)
    ]
    rows = [
        completion_key(rollout) | {"advantage": fmean(values) if values else None, "token_advantages": values}
        for rollout, values in zip(sampled, advantages, strict=True)
    ]
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    tokens = [value for values in advantages for value in values if value == value]  # leaves out the sampler's NaN
    counts = {
        "groups": len({rollout.group for rollout in sampled}),
        "with_signal": len({rollout.group for rollout in sampled if any(rollout.loss_mask)}),
    }
    (folder / "signal.json").write_text(json.dumps(counts))
    mean = -fmean(tokens) if tokens else 0.0
    (folder / TEACHER).write_text(json.dumps({"tokens": len(tokens), "kl": mean}))


def find_teacher(config: OnPolicyConfig, student: Path, trust_remote_code: bool) -> Path:
    """Return the teacher's folder. Raises InputError if the model is missing or its tokenizer is not the student's."""
    teacher = find_model(config.teacher, None, "on_policy.teacher")
    check_tokenizers(student, teacher, "on_policy.teacher", trust_remote_code)
    return teacher
