"""Fit a reward model to the owner's picks."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from conf.schema import TrainerConfig
from models.lessons.preference_data import Pick
from models.reward_model import RewardModel, choice_loss

DEPTH = 2 / 3  # share of the champion's layers that it takes: the last ones are about the next token
PENALTY = 1.0  # on the sum of the squared weights: a few hundred picks decide over several hundred of them
ITERATIONS = 100


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
