"""TRL's own GRPO computations on tensors of ours: no model, no data set, no generation.

The loss is a method of GRPOTrainer and is called as it stands. The advantages are a branch of its method of several
hundred lines that generates and scores: the branch itself is compiled and executed.
"""

import ast
import inspect
import textwrap
import warnings
from collections import defaultdict
from functools import cache
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from conf.schema import GrpoConfig
from tests.models.support.microbatches import Batch

LOSS_TYPES = {"token": "dapo", "sequence": "grpo", "constant": "dr_grpo"}


@cache
def trl() -> ModuleType:
    """TRL's module of the trainer; imported late, since that takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from trl.trainer import grpo_trainer
    return grpo_trainer


def trl_loss(
    policy: Tensor, batch: Batch, config: GrpoConfig, *, level: str | None = None, weights: Tensor | None = None
) -> tuple[Tensor, dict[str, float]]:
    """`_compute_loss` of a GRPOTrainer with our settings, and the metrics that it logged.

    `weights`: the ratios against the sampler, [B, T] or [B, 1]; None: no such correction.
    """
    trainer: Any = object.__new__(trl().GRPOTrainer)
    logged: dict[str, list[float]] = defaultdict(list)
    settings = {
        "_get_per_token_logps_and_entropies": lambda *_, **__: (policy, torch.zeros_like(policy), None),
        "aux_loss_enabled": False,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": level or config.importance,
        "beta": config.kl_coefficient,
        "args": SimpleNamespace(delta=None, use_bias_correction_kl=False),
        "loss_type": LOSS_TYPES[config.aggregation],
        "epsilon_low": config.clip_low,
        "epsilon_high": config.clip_high,
        "use_vllm": weights is not None,
        "vllm_importance_sampling_correction": True,
        "model": SimpleNamespace(training=False),
        "max_completion_length": config.max_completion_tokens,
        "accelerator": SimpleNamespace(gather=lambda x: x, reduce=lambda x, reduction: x, num_processes=1),
        "_entropy_bonus_enabled": False,
        "_metrics": {"eval": logged},
    }
    for name, value in settings.items():
        setattr(trainer, name, value)
    nothing = torch.zeros(len(policy), 1, dtype=torch.long)
    written = batch["mask"].float()
    place = torch.arange(1, 1 + policy.shape[1])
    completion = place <= (written * place).amax(dim=1, keepdim=True)
    inputs = {
        "prompt_ids": nothing,
        "prompt_mask": nothing,
        "completion_ids": torch.zeros_like(policy, dtype=torch.long),
        "completion_mask": completion.float(),
        "tool_mask": written,
        "advantages": batch["advantages"],
        "old_per_token_logps": batch["old"],
        "ref_per_token_logps": batch["ref"],
        "importance_sampling_ratio": weights,
        "num_items_in_batch": written.sum(),
    }
    loss = trainer._compute_loss(None, inputs)
    return loss, {name: values[-1] for name, values in logged.items()}


def trl_advantages(rewards: Tensor, scale: str) -> Tensor:
    """TRL's advantages of rewards [groups, size], `scale` "group" or "none"; NaN: every reward function gave None."""
    flat = rewards.reshape(-1, 1)
    names = dict(vars(trl())) | {
        "self": SimpleNamespace(scale_rewards=scale, reward_weights=torch.ones(1, dtype=rewards.dtype)),
        "rewards_per_func": flat,
        "unscorable_mask": flat.isnan().all(dim=1),
        "num_generations": rewards.shape[1],
        "device": "cpu",
    }
    exec(_advantages(), names)
    return torch.nan_to_num(names["advantages"], nan=0.0).view_as(rewards)  # the statement after the branch


@cache
def _advantages() -> CodeType:
    """The branch of the method that generates and scores, found by its condition."""
    condition = "self.multi_objective_aggregation == 'sum_then_normalize'"
    source = textwrap.dedent(inspect.getsource(trl().GRPOTrainer._generate_and_score_completions))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == condition and "mean_grouped" in ast.unparse(node):
            return compile(ast.Module(node.body, type_ignores=[]), "grpo_trainer.py", "exec")
    raise LookupError(f"TRL has no branch `if {condition}` any more")
