"""The reward model: a language model's lower layers, with a scalar head on the mean over an answer's tokens."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import ModuleList
from transformers import PreTrainedModel

from conf.schema import TrainerConfig
from models.engine.sync_probe import PROBE_FILE
from models.hf.checkpoint import copy_companions
from models.hf.hardware import compute_dtype, resolve_device, tokens_per_pass
from models.hf.loading import load_model
from models.packing.packing import Pack, answer_groups, hidden_states, pack, split
from models.packing.self_check import choose_packing, packed_logprobs

HEAD = "reward_head.safetensors"
PADDING = 0  # packing drops a completion's last token, so each answer gets an extra one

Groups = Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]


def choice_loss(
    rewards: Float[Tensor, "picks n"],
    chosen: Int[Tensor, "picks"],
    centering: float = 0.01,
    weights: Float[Tensor, "picks"] | None = None,
) -> Tensor:
    """Return the mean over picks of weight × (−log softmax(r)[chosen] + centering × (mean of r)²).

    The first term is the negative log-likelihood of the choice under Plackett–Luce (Plackett 1975; for two answers,
    Bradley and Terry 1952). The second term keeps rewards near 0, because choices determine only the differences
    between rewards (for pairs: Eisenstein et al. 2023, arXiv 2312.09244). A reward of −inf marks an answer that was not
    shown; it counts in neither term. Raises ValueError if such an answer was chosen.
    """
    shown = rewards != float("-inf")
    if not bool(shown.gather(1, chosen[:, None]).all()):
        raise ValueError("an answer was chosen that was not shown")
    picked = rewards.log_softmax(dim=1).gather(1, chosen[:, None]).squeeze(1)
    means = rewards.where(shown, 0.0).sum(dim=1) / shown.sum(dim=1)
    losses = centering * means.square() - picked
    return (losses if weights is None else losses * weights).mean()


class RewardModel:
    """Scores answers to prompts. With packing, a prompt goes through the model once for all of its answers.

    A reward is the product of an answer's mean hidden state and `head` [width], in fp32.
    """

    def __init__(self, checkpoint: Path, config: TrainerConfig, depth: float = 1.0) -> None:
        """Take the first layers of a checkpoint (`depth`: their share) and the final norm, and an all-zero head."""
        self.checkpoint, self.config = checkpoint, config
        self.device = resolve_device(config.device)
        self.model = load_model(checkpoint, compute_dtype(self.device), self.device, config.trust_remote_code)
        _cut(self.model, depth)
        self.packs = choose_packing(self.model) is packed_logprobs
        self.model.eval().requires_grad_(False)
        self.head = torch.zeros(self.model.config.get_text_config().hidden_size, device=self.device)

    @classmethod
    def load(cls, checkpoint: Path, config: TrainerConfig) -> "RewardModel":
        """Load a reward model from a folder that `save` wrote. Raises OSError if the folder has no head."""
        loaded = cls(checkpoint, config)
        loaded.head.copy_(load_file(checkpoint / HEAD)["weight"])  # aligned memory, so the same bits
        return loaded

    def save(self, folder: Path) -> None:
        """Write the backbone and the head as a Hugging Face folder."""
        copy_companions(self.checkpoint, folder)
        (folder / PROBE_FILE).unlink(missing_ok=True)  # it describes the original language model
        self.model.save_pretrained(folder)
        save_file({"weight": self.head}, folder / HEAD)

    def _states(self, packed: Pack) -> Float[Tensor, "answers width"]:
        """Return the mean hidden state over each answer's tokens, in pack order.

        For an answer without tokens, this is the state at the prompt's last token.
        """
        if self.packs:
            read = hidden_states(self.model, packed).float().split(packed.lengths)
        else:
            read = [self._alone(g.prompt, answer[:-1]) for g in packed.groups for answer in g.completions]
        return torch.stack([own[1:].mean(dim=0) if len(own) > 1 else own[0] for own in read])

    @torch.no_grad()
    def read(self, groups: Groups) -> Float[Tensor, "answers width"]:
        """Return the mean hidden state over each answer's tokens, in fp32 and in the order of the answers."""
        asked = answer_groups(
            [(prompt, [[*each, PADDING] for each in answers]) for prompt, answers in groups if answers]
        )
        found = self.head.new_zeros(sum(len(group.rows) for group in asked), len(self.head))
        for batch in split(asked, tokens_per_pass(self.config.microbatch_tokens, self.device)):
            packed = pack(batch, self.device)
            found[list(packed.rows)] = self._states(packed)
        return found

    def judge(self, groups: Groups) -> list[list[float]]:
        """Return a reward for each answer. `groups`: prompts with their answers, as token ids (with any end tokens)."""
        rewards = iter((self.read(groups) @ self.head).tolist())
        return [[next(rewards) for _ in answers] for _, answers in groups]

    def _alone(self, prompt: Sequence[int], answer: Sequence[int]) -> Float[Tensor, "tokens width"]:
        """Return the hidden states at the prompt's last token and at each of the answer's."""
        ids = torch.tensor([[*prompt, *answer]], device=self.device)
        return self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0, len(prompt) - 1 :].float()


def _cut(model: PreTrainedModel, depth: float) -> None:
    """Keep only the first `depth` of a model's layers."""
    config: Any = model.config.get_text_config()
    count = config.num_hidden_layers
    config.num_hidden_layers = kept = max(1, round(depth * count))
    del next(part for part in model.modules() if isinstance(part, ModuleList) and len(part) == count)[kept:]
    if getattr(config, "layer_types", None):  # which layers attend to a window only
        config.layer_types = config.layer_types[:kept]
