"""Does the credit of a turn reflect its worth? Each kind of credit is compared with Monte-Carlo continuations.

    python -m benchmarks.credit --checkpoint FOLDER [--states 200] [--continuations 16]

The checkpoint (a student of conf/ants.yaml) plays groups of 8 episodes of ants. At random turns, it continues the
episode several times from the state before the turn, and several times from the state after it. A turn's worth is its
reward plus the mean return after it, minus the mean return before it. Prints Spearman's rank correlation between this
worth and the advantages that `episode` and `td` give the same turns. The correlation between the worths from
two halves of the continuations shows how reliable it is.
"""

import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks.inputs.options import options
from benchmarks.machine.child import engine
from benchmarks.outputs.page import markdown
from conf.load import load_night
from conf.schema import GrpoConfig
from models.advantages import GAMMA, Visit, group_advantages, state_values, turn_advantages
from models.hf.loading import load_tokenizer, prompt_tokens
from models.transcript import Transcript
from rewards.environments.ants import Ants
from rewards.environments.episodes import Episodes, replay
from rewards.verifier import Turn
from tasks.rollouts.episodes import Episode, Game, play
from tasks.rollouts.score import spans
from tasks.rollouts.verified import Player

GROUP = 8
KINDS = {"episode": GrpoConfig(credit="episode"), "td": GrpoConfig(credit="td")}


class Sampled(NamedTuple):
    """A turn to examine: its episode, its number in the episode, and its advantage under each kind of credit."""

    episode: Episode
    turn: int
    advantages: tuple[float, ...]


def main() -> None:
    """Play the episodes, continue them from the sampled turns, and print the correlations."""
    given = options(__doc__, {"--checkpoint": Path, "--states": 200, "--continuations": 16, "--groups": 16})
    config = load_night(Path("conf/ants.yaml"))
    checkpoint: Path = given.checkpoint.resolve()
    with Game(Episodes(Ants(), bounded=True)) as opened, engine() as worker:
        player = Player(checkpoint, config.student, config.sampler, worker, config.grpo.max_completion_tokens, 1.0)
        sampled = audited(opened, player, given.groups, given.states)
        worth = continuations(sampled, opened, player, given.continuations)
    half, whole = worth.shape[1] // 2, worth.mean(axis=1)
    pairs = {"two halves of the continuations": (worth[:, :half].mean(axis=1), worth[:, half:].mean(axis=1))}
    pairs |= {kind: (np.array([one.advantages[at] for one in sampled]), whole) for at, kind in enumerate(KINDS)}
    found: dict[str, Any] = {name: spearmanr(*pair) for name, pair in pairs.items()}
    rows = ([name, f"{each.statistic:.3f}"] for name, each in found.items())
    print(f"{len(sampled)} states", markdown("credit | Spearman's ρ", rows), sep="\n\n")


def audited(opened: Game, player: Player, groups: int, states: int) -> list[Sampled]:
    """Play groups of episodes, and return up to `states` of their turns at random, each with its advantages."""
    tokenizer, ants = load_tokenizer(player.checkpoint), Ants()
    episodes: list[Episode] = []
    for group, problem in enumerate(ants.problems("train")[:groups]):
        prompt = prompt_tokens(tokenizer, [{"role": "user", "content": ants.reset(problem)[1]}], player.student)
        episodes += [Episode(problem, group, sample, [Transcript(prompt)]) for sample in range(GROUP)]
    opened.begin(episodes)
    play(episodes, opened, player, "audit", None)
    found: list[Sampled] = []
    for start in range(0, len(episodes), GROUP):
        members = episodes[start : start + GROUP]
        played = [replay(Ants(), one.problem, one.texts) for one in members]
        visits = [[Visit(turn.observation, turn.reward) for turn in turns] for turns in played]
        returns = torch.tensor([[sum(turn.reward for turn in turns) for turns in played]])
        whole = group_advantages(returns)[0]
        values = state_values(visits, GAMMA)
        kinds = [turn_advantages(visits, values, whole, grpo) for grpo in KINDS.values()]
        for row, (episode, turns) in enumerate(zip(members, played, strict=True)):
            for turn in range(1, len(turns) - 1):
                found.append(Sampled(episode, turn, tuple(kind[row][turn] for kind in kinds)))
    return random.Random(1).sample(found, min(states, len(found)))


def continuations(sampled: Sequence[Sampled], opened: Game, player: Player, count: int) -> np.ndarray:
    """Return `count` estimates of each turn's worth [states, count]: reward + γ · return after − return before."""
    played = {id(one.episode): replay(Ants(), one.episode.problem, one.episode.texts) for one in sampled}
    before = continued([cut(one, played, 0) for one in sampled for _ in range(count)], opened, player, "before")
    after = continued([cut(one, played, 1) for one in sampled for _ in range(count)], opened, player, "after")
    rewards = np.array([played[id(one.episode)][one.turn].reward for one in sampled])
    return rewards[:, None] + GAMMA * after.reshape(-1, count) - before.reshape(-1, count)


def cut(one: Sampled, played: dict[int, list[Turn]], done: int) -> tuple[Episode, int]:
    """Return a copy of the episode, cut before the sampled turn or (`done` 1) after it, and its number of turns."""
    turns, kept = played[id(one.episode)], one.turn + done
    first = spans(one.episode.rollout())[kept][0]
    again = copy.deepcopy(one.episode)
    again.state, again.finish = dict(turns[kept].state), ""
    again.texts = again.texts[:kept]
    for name in ("token_ids", "sampler_logprobs", "loss_mask"):
        setattr(again.acting, name, getattr(again.acting, name)[:first])
    again.acting.seen = [start for start in again.acting.seen if start < first]
    again.acting.ended = True
    return again, kept


def continued(cuts: Sequence[tuple[Episode, int]], opened: Game, player: Player, seed: str) -> np.ndarray:
    """Play the cut episodes to the end, and return the discounted return of each from the cut on."""
    play([episode for episode, _ in cuts], opened, player, seed, None)
    returns = []
    for episode, kept in cuts:
        rewards = [turn.reward for turn in replay(Ants(), episode.problem, episode.texts)[kept:]]
        returns.append(sum(GAMMA**number * reward for number, reward in enumerate(rewards)))
    return np.array(returns)


if __name__ == "__main__":
    main()
