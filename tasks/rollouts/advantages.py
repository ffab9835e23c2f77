"""Compute advantages from a round's scores."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from conf.schema import GrpoConfig
from models.advantages import Visit, group_advantages, most_varied, overlong_rewards, state_values, turn_advantages
from models.rollout import Rollout
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, SCORES, TURNS, Row, completion_key, read_table, table_rows, write_table


@stage()
def credit(folder: Path, *, scores: Artifact, rollouts: Artifact, grpo: GrpoConfig) -> None:
    """Write each completion's advantage over its group; null if it was not graded, or cut off with `overlong: mask`.

    With `train_on`, the completions selected for training are compared with each other alone, so that their advantages
    sum to 0. The other completions get null.

    `signal.json` counts all groups, and those with signal: groups in which a completion has tokens to train on and a
    nonzero advantage. A group has no signal if its rewards are equal or fewer than two completions were graded. For
    episodes of several turns, the stage also writes `turns.parquet` and, with `credit: td`, an advantage per token.
    """
    table: pd.DataFrame = read_table(scores.folder / "scores.parquet", SCORES)
    table = table.sort_values(["group", "sample"])
    sampled = {(r.group, r.sample): r for r in sampled_rollouts(rollouts)}
    completions = [sampled[key] for key in zip(table.group, table["sample"], strict=True)]
    rewards = torch.tensor(table.reward.to_numpy(dtype=float)).view(-1, grpo.group_size)
    lengths = torch.tensor([rollout.written for rollout in completions]).view_as(rewards)
    cut = torch.tensor([rollout.finish_reason == "length" for rollout in completions]).view_as(rewards)
    shaped = overlong_rewards(rewards, lengths, cut, grpo)
    if grpo.train_on is not None:
        shaped = shaped.masked_fill(~most_varied(shaped, grpo.train_on), float("nan"))
    advantages = group_advantages(shaped, grpo.scale)
    trainable = torch.tensor([any(rollout.loss_mask) for rollout in completions]).view_as(rewards)
    signal = ((advantages.nan_to_num(0.0) != 0) & trainable).any(dim=1)
    by_turn = _credit_turns(folder, scores, completions, advantages.flatten(), grpo)
    if by_turn and grpo.credit != "episode":
        has_signal = [any(by_turn[_key(rollout)]) for rollout in completions]
        signal = torch.tensor(has_signal).view_as(rewards).any(dim=1)
    rows = [
        completion_key(rollout)
        | {"advantage": None if advantage != advantage else advantage, "token_advantages": by_turn.get(_key(rollout))}
        for rollout, advantage in zip(completions, advantages.flatten().tolist(), strict=True)
    ]
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    (folder / "signal.json").write_text(json.dumps({"groups": len(signal), "with_signal": int(signal.sum())}))


def _credit_turns(
    folder: Path, scores: Artifact, completions: Sequence[Rollout], advantages: Tensor, grpo: GrpoConfig
) -> dict[tuple[int, int], list[float]]:
    """Write each turn with its value and advantage. Return one advantage per token, by (group, sample) of the episode.

    `advantages`: one per completion. The result is empty for single answers and with `credit: episode`.
    """
    if not (file := scores.folder / "turns.parquet").exists():
        return {}
    turns: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in table_rows(file, TURNS):
        turns[row["group"], row["sample"]].append(row)
    found: dict[tuple[int, int], list[float]] = {}
    for start in range(0, len(completions), grpo.group_size):
        rollouts = completions[start : start + grpo.group_size]
        own = [turns[_key(rollout)] for rollout in rollouts]
        group = [[Visit(row["state_key"], row["reward"]) for row in episode] for episode in own]
        values = state_values(group)
        whole = advantages[start : start + grpo.group_size].nan_to_num(0.0)
        earned = turn_advantages(group, values, whole, grpo)
        for rollout, episode, its_values, its_advantages in zip(rollouts, own, values, earned, strict=True):
            for row, value, advantage in zip(episode, its_values, its_advantages, strict=True):
                row |= {"value": value, "advantage": advantage}
            if grpo.credit != "episode":
                found[_key(rollout)] = _on_tokens(rollout, episode, its_advantages)
    write_table(folder / "turns.parquet", TURNS, [row for episode in turns.values() for row in episode])
    return found


def _on_tokens(rollout: Rollout, turns: Sequence[Row], advantages: Sequence[float]) -> list[float]:
    """Return one advantage per token: that of the token's turn, or 0 if the policy did not write the token."""
    values = [0.0] * len(rollout.token_ids)
    for turn, advantage in zip(turns, advantages, strict=True):
        values[turn["first"] : turn["first"] + turn["tokens"]] = [advantage] * turn["tokens"]
    return values


def _key(rollout: Rollout) -> tuple[int, int]:
    return rollout.group, rollout.sample
