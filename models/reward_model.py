"""The reward model: a language model's lower layers, with a scalar head on the mean over an answer's tokens.

`fit` fits one to the owner's picks.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from conf.schema import TrainerConfig
from models.engine.sync_probe import PROBE_FILE
from models.hf.checkpoint import copy_companions
from models.hf.hardware import compute_dtype, resolve_device, tokens_per_pass
from models.hf.loading import load_model
from models.lessons.preference_data import Pick
from models.packing.packing import Pack, answer_groups, hidden_states, pack, split
from models.packing.self_check import choose_packing, packed_logprobs

HEAD = "reward_head.safetensors"
PADDING = 0  # packing drops a completion's last token, so each answer gets an extra one
DEPTH = 2 / 3  # share of the champion's layers that it takes: the last ones are about the next token
PENALTY = 1.0  # on the sum of the squared weights: a few hundred picks decide over several hundred of them
ITERATIONS = 100

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


def fit(champion: Path, picks: Sequence[Pick], trainer: TrainerConfig) -> RewardModel:
    """Fit a reward model to picks: a head on the champion's frozen lower layers, which read each answer only once."""
    model = RewardModel(champion, trainer, DEPTH)
    states = model.read([(pick.prompt, pick.answers) for pick in picks])
    shown = states.split([len(pick.answers) for pick in picks])
    model.head = fit_head(shown, [pick.chosen for pick in picks], [pick.weight for pick in picks])
    return model


def fit_head(
    shown: Sequence[Float[Tensor, "n width"]], chosen: Sequence[int], weights: Sequence[float]
) -> Float[Tensor, "width"]:
    """Return the weights of a linear head that predicts picks from the hidden states of the answers shown.

    `weights`: how much each pick counts. This is a conditional logit model (McFadden 1974) of standardised hidden
    states with a penalty. It is convex, so the fit needs no learning rate and has one result.
    """
    states = torch.cat([*shown]).double()
    scale = states.std(dim=0).clamp(min=1e-6)
    standard, sizes = (states - states.mean(dim=0)) / scale, [len(each) for each in shown]
    rows = pad_sequence([*standard.split(sizes)], batch_first=True)  # [picks, n, width]
    padding = torch.arange(rows.shape[1], device=rows.device) >= torch.tensor(sizes, device=rows.device)[:, None]
    picked, ages = torch.tensor(chosen, device=rows.device), rows.new_tensor(weights)
    relative = ages / (ages.mean() or 1.0)  # all picks may be too old to count
    head = rows.new_zeros(rows.shape[-1], requires_grad=True)
    optimizer = torch.optim.LBFGS([head], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        rewards = (rows @ head).masked_fill(padding, float("-inf"))
        total = choice_loss(rewards, picked, weights=relative) + PENALTY * head.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    return (head.detach() / scale).float()
