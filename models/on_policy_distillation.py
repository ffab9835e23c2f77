"""On-policy distillation: the student writes, and a teacher says of each token how likely it finds it.

Agarwal et al. 2023, "On-policy distillation of language models" (arXiv 2306.13649); Thinking Machines Lab 2025,
"On-Policy Distillation", whose recipe this is: the reverse KL as each token's advantage, with a discount of 0.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from conf.home import InputError
from conf.schema import TrainerConfig
from models.grpo import LOG_RATIO_LIMIT
from models.packing_probe import choose_packing
from models.policy import load_model, load_tokenizer
from models.precision import computed_in
from models.rollout import Rollout
from models.rollout_groups import grouped, logprobs_by_row

# Letters, digits, spaces, lines, marks and scripts, each cut in its own way by tokenizers that differ.
TEXT = "The 3 answers:  1,234.5 − 67 = “1167.5”\n\n\tdef f(x):\n\t\treturn x**2  # größer, 学校, школа, 🌒 <b>"


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
    model = load_model(teacher, computed_in(device), device, config.trust_remote_code)
    logprobs = choose_packing(model.eval())
    groups = grouped(rollouts, [row for row, rollout in enumerate(rollouts) if rollout.token_ids])
    found = logprobs_by_row(model, logprobs, groups, config.microbatch_tokens)
    return [found[row].tolist() if row in found else [] for row in range(len(rollouts))]


def check_tokenizers(student: Path, teacher: Path, trust_remote_code: bool = False) -> None:
    """Raises InputError unless the teacher reads tokens as the student writes them: same words, numbers, end and cuts.

    Whether the vocabularies are equal is not enough: the same pieces can be put together in another way.
    """
    own, other = (load_tokenizer(folder, trust_remote_code) for folder in (student, teacher))
    differs = None
    if own.get_vocab() != other.get_vocab():
        differs = f"their vocabularies ({len(own.get_vocab())} and {len(other.get_vocab())} tokens) differ"
    elif own.eos_token_id != other.eos_token_id:
        differs = f"their end tokens ({own.eos_token!r} and {other.eos_token!r}) differ"
    elif own.encode(TEXT, add_special_tokens=False) != other.encode(TEXT, add_special_tokens=False):
        differs = "they cut the same text into other tokens"
    if differs is not None:
        raise InputError(
            f"on_policy.teacher: {teacher}: its tokenizer is not the student's: {differs}; "
            "name a larger model of the student's own family"
        )
