"""On-policy distillation: a teacher scores each token that the student sampled, in addition to the reward."""

import json
import math
from pathlib import Path
from statistics import fmean

from conf.schema import TrainerConfig
from conf.sections.stages import OnPolicyConfig
from models.hf.loading import check_tokenizers
from tasks.registry.import_model import find_model
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, completion_key, table_rows, write_table
from tasks.training import trainer_process
from tasks.workers.worker import Worker

TEACHER = "teacher.json"


@stage(retries=2, resources=("teacher", "trainer"))
def add_teacher(
    folder: Path,
    *,
    rollouts: Artifact,
    advantages: Artifact,
    config: OnPolicyConfig,
    trainer_config: TrainerConfig,
    teacher: Path,
    trainer: Worker,
) -> None:
    """Write every token's advantage: that of the reward plus the teacher's, each times its weight.

    The teacher's is its log-probability minus the student's, clamped to ±20 nats. The student's log-probabilities come
    from the sampler and differ from the trainer's by hundredths of a nat; the loss corrects for that. `advantage` is
    the mean over a completion's tokens. Completions without an advantage, such as ungraded ones, still have none.

    `signal.json` counts all groups, and those with signal, which have at least one token to train on. `teacher.json`
    has the number of scored tokens and their mean log π − log p_teacher (`kl`), an estimate of KL(student‖teacher) in
    nats. `teacher`: the folder of the teacher model.
    """
    from models.lessons.on_policy_distillation import token_advantages  # loads models

    sampled, rewarded = sampled_rollouts(rollouts), table_rows(advantages.folder / "advantages.parquet", ADVANTAGES)
    earned = {(row["group"], row["sample"]): row["advantage"] for row in rewarded}
    temperature = trainer_config.grpo.temperature
    scored = trainer.call(trainer_process.teacher_logprobs, teacher, trainer_config, sampled, temperature)
    rows, known, useful = [], list[float](), set[int]()
    for rollout, logprobs in zip(sampled, scored, strict=True):
        own, nats = earned[rollout.group, rollout.sample], token_advantages(rollout.sampler_logprobs, logprobs)
        known += [value for value in nats if not math.isnan(value)]  # NaN: the sampler did not know its own
        values = None if own is None else [config.reward_weight * own + config.weight * one for one in nats]
        if values:
            useful.add(rollout.group)
        mean = fmean(values) if values else None
        rows.append(completion_key(rollout) | {"advantage": mean, "token_advantages": values})
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    counts = {"groups": len({rollout.group for rollout in sampled}), "with_signal": len(useful)}
    (folder / "signal.json").write_text(json.dumps(counts))
    kl = -fmean(known) if known else 0.0
    (folder / TEACHER).write_text(json.dumps({"tokens": len(known), "kl": kl}))


def find_teacher(config: OnPolicyConfig, student: Path, trust_remote_code: bool) -> Path:
    """Return the teacher's folder. Raises InputError if the model is missing or its tokenizer is not the student's."""
    teacher = find_model(config.teacher, None, "on_policy.teacher")
    check_tokenizers(student, teacher, "on_policy.teacher", trust_remote_code)
    return teacher
