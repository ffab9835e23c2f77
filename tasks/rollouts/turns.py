"""Convert the turns of episodes to table rows, and advantages per turn to advantages per token."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from models.rollout import Rollout
from rewards.verifier import Score
from tasks.tables import Row, completion_key


def turn_rows(rollout: Rollout, score: Score) -> Iterator[Row]:
    """Yield a row of the turns table for each turn of an episode, in order, or nothing for a single answer."""
    by_agent = sorted(range(len(score.turns)), key=lambda number: score.turns[number].agent)  # as in the rollout
    places = dict(zip(by_agent, spans(rollout), strict=False))
    for number, turn in enumerate(score.turns):
        if number not in places:
            continue
        first, length = places[number]
        yield completion_key(rollout) | {
            "turn": number,
            "agent": turn.agent,
            "first": first,
            "tokens": length,
            "state_key": hashlib.sha256(turn.observation.encode()).hexdigest()[:20],
            "action": turn.action,
            "valid": turn.valid,
            "reward": turn.reward,
            "parts": json.dumps(dict(turn.parts)),
        }


def spans(rollout: Rollout) -> list[tuple[int, int]]:
    """Return the token span (start, length) of each answer that the policy wrote in an episode."""
    runs = [
        [index for index, _ in run] for written, run in groupby(enumerate(rollout.loss_mask), lambda x: x[1]) if written
    ]
    return [(run[0], len(run)) for run in runs]


def on_tokens(rollout: Rollout, turns: Sequence[Row], advantages: Sequence[float]) -> list[float]:
    """Return one advantage per token: that of the token's turn, or 0 if the policy did not write the token."""
    values = [0.0] * len(rollout.token_ids)
    for turn, advantage in zip(turns, advantages, strict=True):
        values[turn["first"] : turn["first"] + turn["tokens"]] = [advantage] * turn["tokens"]
    return values
