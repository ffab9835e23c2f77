"""On-policy distillation: the student samples, and a teacher's log-probabilities score each sampled token.

Sources: Agarwal et al. 2023, "On-policy distillation of language models" (arXiv 2306.13649); for the recipe, Thinking
Machines Lab 2025, "On-Policy Distillation". A token's advantage is its negative reverse KL, with discount 0.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from conf.schema import TrainerConfig
from models.grpo import LOG_RATIO_LIMIT
from models.hf.hardware import compute_dtype, resolve_device, tokens_per_pass
from models.rollout import Rollout


def token_advantages(policy: Sequence[float], teacher: Sequence[float]) -> list[float]:
    """Return log p(x) − log π(x), clamped to ±20 nats, for each token x of a completion (p: teacher, π: student).

    Its expectation under π is −KL(π‖p), and the expected policy gradient is −∇KL(π‖p) at each position: E[A ∇log π] =
    −Σ π (log π − log p) ∇log π, and the other term of the KL's gradient, Σ π ∇log π, is 0. NaN stays NaN.
    """
    difference = torch.tensor(teacher, dtype=torch.float64) - torch.tensor(policy, dtype=torch.float64)
    return difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).tolist()


def teacher_logprobs(
    teacher: Path, config: TrainerConfig, rollouts: Sequence[Rollout], temperature: float = 1.0
) -> list[list[float]]:
    """Return the teacher's log-probability of each token that the student wrote in each rollout, in nats.

    `teacher`: the folder of a model whose tokenizer passes `check_tokenizers`. `temperature`: the one at which the
    rollouts were sampled; it divides the teacher's logits, too. Packing is used if it works.
    """
    from models.hf.loading import load_model  # imports transformers' models, not needed by the night's main process
    from models.packing.batches import rollout_logprobs
    from models.packing.self_check import choose_packing

    device = resolve_device(config.device)
    model = load_model(teacher, compute_dtype(device), device, config.trust_remote_code)
    tokens = tokens_per_pass(config.microbatch_tokens, device)
    return rollout_logprobs(model, choose_packing(model.eval()), rollouts, tokens, temperature)
