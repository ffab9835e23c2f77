"""On-policy distillation's credit: each token of a completion by what a teacher thinks of it."""

import json
from pathlib import Path
from statistics import fmean

from conf.schema import TrainerConfig
from conf.sections.stages import OnPolicyConfig
from models.hf.loading import check_tokenizers
from models.lessons.on_policy_distillation import token_advantages
from tasks.registry.import_model import find_model
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, write_table
from tasks.training import trainer_process
from tasks.workers import Worker

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
    """The advantage of every token is the teacher's log-probability of it less the student's own.

    The student's are the sampler's, from which the tokens were drawn: they differ from the trainer's by hundredths of
    a nat, for which the loss makes up. `advantage` is the mean over a completion's tokens. `signal.json` counts the
    groups, of which all with a token have signal. `teacher.json` has the mean of log π − log p, in nats a token, an
    estimate of KL(student‖teacher), and the tokens that it was taken over. `teacher`: the folder that `config` means.
    """
    sampled = sampled_rollouts(rollouts)
    scored = trainer.call(trainer_process.teacher_logprobs, teacher, trainer_config, sampled)
    advantages = [
        token_advantages(rollout.sampler_logprobs, logprobs) for rollout, logprobs in zip(sampled, scored, strict=True)
    ]
    write_table(
        folder / "advantages.parquet",
        ADVANTAGES,
        [
            {
                "problem_id": rollout.problem_id,
                "group": rollout.group,
                "sample": rollout.sample,
                "advantage": fmean(own) if own else None,
                "token_advantages": own,
            }
            for rollout, own in zip(sampled, advantages, strict=True)
        ],
    )
    tokens = [value for own in advantages for value in own if value == value]  # without the sampler's NaN
    counts = {
        "groups": len({rollout.group for rollout in sampled}),
        "with_signal": len({rollout.group for rollout in sampled if any(rollout.loss_mask)}),
    }
    (folder / "signal.json").write_text(json.dumps(counts))
    mean = -fmean(tokens) if tokens else 0.0
    (folder / TEACHER).write_text(json.dumps({"tokens": len(tokens), "kl": mean}))


def find_teacher(config: OnPolicyConfig, student: Path, trust_remote_code: bool) -> Path:
    """The teacher's folder. Raises InputError where there is none, or where it reads other tokens than the student."""
    teacher = find_model(config.teacher, config.revision, "on_policy.teacher")
    check_tokenizers(student, teacher, "on_policy.teacher", trust_remote_code)
    return teacher
