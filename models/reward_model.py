"""The reward model: a language model's backbone with a scalar head on an answer's last token."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor

from conf.schema import TrainerConfig
from models import lora
from models.checkpoint import copy_companions
from models.engine.sync_probe import PROBE_FILE
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model
from models.packing.packing import Group, Pack, hidden_states, pack, split
from models.packing.self_check import choose_packing, packed_logprobs

HEAD = "reward_head.safetensors"
UNREAD = 0  # a pack leaves out a completion's last token: behind the answer's own stands one more, that is never read


def choice_loss(
    rewards: Float[Tensor, "picks n"],
    chosen: Int[Tensor, "picks"],
    centering: float = 0.01,
    weights: Float[Tensor, "picks"] | None = None,
) -> Tensor:
    """−log softmax(r)[chosen] + centering × (mean of r)², in the mean over picks, each times its weight.

    The first term is Plackett and Luce's probability of the first choice (Plackett 1975; for two answers Bradley and
    Terry 1952); the second holds the rewards around 0, which choices say nothing about (as Eisenstein et al. 2023,
    arXiv 2312.09244, do for pairs). −inf marks an answer that was not shown: it takes part in neither. Raises
    ValueError where such a one was chosen.
    """
    shown = rewards != float("-inf")
    if not bool(shown.gather(1, chosen[:, None]).all()):
        raise ValueError("an answer was chosen that was not shown")
    picked = rewards.log_softmax(dim=1).gather(1, chosen[:, None]).squeeze(1)
    means = rewards.where(shown, 0.0).sum(dim=1) / shown.sum(dim=1)
    losses = centering * means.square() - picked
    return (losses if weights is None else losses * weights).mean()


class Head(torch.nn.Module):
    """reward = hidden state · weight, in fp32; it begins at 0, so that no answer is better before there are picks."""

    def __init__(self, width: int, device: torch.device) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(width, device=device))

    def forward(self, hidden: Float[Tensor, "answers width"]) -> Float[Tensor, "answers"]:
        """One reward for each row."""
        return hidden.float() @ self.weight


class RewardModel:
    """Rewards of answers to prompts. The answers to one prompt are computed together, the prompt once for all."""

    def __init__(self, checkpoint: Path, config: TrainerConfig) -> None:
        """Begins with the backbone of a checkpoint and a head of zeros."""
        self.checkpoint, self.config = checkpoint, config
        cuda = torch.cuda.is_available() if config.device == "auto" else config.device == "cuda"
        self.device = torch.device("cuda" if cuda else "cpu")
        self.model = load_model(checkpoint, compute_dtype(self.device), self.device, config.trust_remote_code)
        self.packs = choose_packing(self.model) is packed_logprobs
        self.model.eval()
        self.head = Head(self.model.config.get_text_config().hidden_size, self.device)

    @classmethod
    def load(cls, checkpoint: Path, config: TrainerConfig) -> "RewardModel":
        """The model that `save` wrote. Raises OSError where the folder holds none."""
        found = cls(checkpoint, config)
        found.head.load_state_dict(load_file(checkpoint / HEAD, device=str(found.device)))
        found.model.requires_grad_(False)
        found.head.requires_grad_(False)
        return found

    def save(self, folder: Path) -> None:
        """Writes the backbone as a Hugging Face folder, adapters merged into it, and the head beside it."""
        copy_companions(self.checkpoint, folder)
        (folder / PROBE_FILE).unlink(missing_ok=True)  # what the backbone's language model said: it is another one now
        self.model.save_pretrained(folder, state_dict=lora.merged_weights(self.model))
        save_file(self.head.state_dict(), folder / HEAD)

    def rewards(self, packed: Pack) -> Float[Tensor, "answers"]:
        """The rewards of a pack of `answer_group`, in its order, differentiable."""
        if self.packs:
            ends = torch.tensor(packed.lengths, device=self.device).cumsum(0) - 1
            return self.head(hidden_states(self.model, packed).index_select(0, ends))
        rows = [self._last_state([*g.prompt, *answer[:-1]]) for g in packed.groups for answer in g.completions]
        return self.head(torch.stack(rows))

    @torch.no_grad()
    def judge(self, groups: Sequence[tuple[Sequence[int], Sequence[Sequence[int]]]]) -> list[list[float]]:
        """The rewards of each prompt's answers (token ids, the end token included where there is one)."""
        rows = iter(range(sum(len(answers) for _, answers in groups)))
        asked = [answer_group(prompt, answers, [next(rows) for _ in answers]) for prompt, answers in groups if answers]
        found: dict[int, float] = {}
        for batch in split(asked, self.config.microbatch_tokens):
            packed = pack(batch, self.device)
            found |= dict(zip(packed.rows, self.rewards(packed).tolist(), strict=True))
        ordered = iter([found[row] for row in sorted(found)])
        return [[next(ordered) for _ in answers] for _, answers in groups]

    def _last_state(self, tokens: Sequence[int]) -> Float[Tensor, "width"]:
        ids = torch.tensor([list(tokens)], device=self.device)
        return self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0, -1]


def answer_group(prompt: Sequence[int], answers: Sequence[Sequence[int]], rows: Sequence[int]) -> Group:
    """A prompt and its answers, to be packed so that every token of theirs is read."""
    return Group(prompt, [[*answer, UNREAD] for answer in answers], rows)
