"""On-policy distillation: the student writes, and a teacher says of each token how likely it finds it.

Agarwal et al. 2023, "On-policy distillation of language models" (arXiv 2306.13649); Thinking Machines Lab 2025,
"On-Policy Distillation", whose recipe this is: the reverse KL as each token's advantage, with a discount of 0.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from conf.schema import TrainerConfig
from models.grpo import LOG_RATIO_LIMIT
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model
from models.packing.batches import grouped, logprobs_by_row
from models.packing.self_check import choose_packing
from models.rollout import Rollout


def token_advantages(policy: Sequence[float], teacher: Sequence[float]) -> list[float]:
    """−(log π(x) − log p(x)) for each token x of a completion, in nats: π the student, p the teacher, at most 20 apart.

    Its mean over tokens that π sampled is −KL(π‖p), and the policy gradient that it makes is −∇KL(π‖p) at each
    position: E[A ∇log π] = −Σ π (log π − log p) ∇log π, and the missing term Σ π ∇log π is 0. A NaN stays one.
    """
    difference = torch.tensor(teacher, dtype=torch.float64) - torch.tensor(policy, dtype=torch.float64)
    return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).tolist()


def teacher_logprobs(teacher: Path, config: TrainerConfig, rollouts: Sequence[Rollout]) -> list[list[float]]:
    """The teacher's log-probability of every token of every rollout, in nats; packed where it can be.

    `teacher`: the folder of a model with the tokenizer that the rollouts were written with (see `check_tokenizers`).
    """
    cuda = torch.cuda.is_available() if config.device == "auto" else config.device == "cuda"
    device = torch.device("cuda" if cuda else "cpu")
    model = load_model(teacher, compute_dtype(device), device, config.trust_remote_code)
    logprobs = choose_packing(model.eval())
    groups = grouped(rollouts, [row for row, rollout in enumerate(rollouts) if rollout.token_ids])
    found = logprobs_by_row(model, logprobs, groups, config.microbatch_tokens)
    return [found[row].tolist() if row in found else [] for row in range(len(rollouts))]
