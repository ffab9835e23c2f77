"""Presents an environment as a benchmark. A problem starts an episode; a completion is all that the model wrote in it.

A completion is a JSON list with the text of each turn, and is graded by replaying the episode with these texts. So
an exam, a round or a drawing needs nothing but these texts to reproduce the episode.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from conf.storage.home import InputError
from rewards.environment import Environment, State, Step
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split, Turn

SOLVED = 1.0  # an episode with at least this value counts as correct
LONGEST = 200  # characters of an environment's error message that are shown


class Episodes(Benchmark):
    """A benchmark whose problems are played as episodes. `bounded`: whether the environment limits its own time."""

    def __init__(self, environment: Environment, *, bounded: bool = False) -> None:
        self.environment = self._environment = environment
        self.name, self.bounded = environment.name, bounded

    def problems(self, split: Split) -> list[Problem]:
        """Return the problems that start a split's episodes."""
        return self._environment.problems(split)

    def kind(self, problem: Problem) -> str:
        """Return the kind of episode that a problem starts, as named by the environment."""
        return self._environment.kind(problem)

    def mastered(self, level: str, rate: float) -> bool:
        """Return whether a student with this solve rate at a level may practise the next one."""
        passed = getattr(self._environment, "mastered", None)
        return passed is None or passed(level, rate)

    def prompt(self, problem: Problem) -> str:
        """Return the first observation of the problem's episode."""
        return checked_reset(self._environment, problem)[1]

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return a teacher's episodes as pairs of a problem and a completion, or an empty list if there are none."""
        taught = getattr(self._environment, "solutions", list)
        return [(problem, json.dumps(texts)) for problem, texts in taught()]

    def score_one(self, attempt: Attempt) -> Score:
        """Return an episode's score: its total reward, verdict and named parts. The exam counts the part `value`.

        Raises InputError if the environment raises.
        """
        started = time.perf_counter()
        turns = replay(self._environment, attempt.problem, texts_of(attempt.completion))
        value = turns[-1].value if turns else 0.0
        valid = sum(turn.valid for turn in turns)
        parts = {"value": value, "turns": float(len(turns)), "valid": valid / max(1, len(turns))}
        for name in sorted({name for turn in turns for name in turn.parts}):
            parts[name] = sum(turn.parts.get(name, 0.0) for turn in turns)
        verdict = "correct" if value >= SOLVED else "wrong" if valid else "no_answer"
        reward = sum(turn.reward for turn in turns)
        return Score(reward, verdict, parts=parts, seconds=time.perf_counter() - started, turns=turns)


def texts_of(completion: str) -> list[str]:
    """Return the text of each turn in a completion. A completion that is not a JSON list of turns is a single turn."""
    return [text for text, _ in weighted_texts(completion)]


def weighted_texts(completion: str) -> list[tuple[str, float]]:
    """Return each turn's text and training weight: 0 for a turn that is not trained on, else 1."""
    try:
        turns = json.loads(completion)
        if isinstance(turns, list):
            return [(turn, 1) if isinstance(turn, str) else (turn["content"], turn["weight"]) for turn in turns]
    except (ValueError, TypeError, KeyError):
        pass
    return [(completion, 1)]


def replay(environment: Environment, problem: Problem, texts: Sequence[str]) -> list[Turn]:
    """Replay an episode until it ends or the texts run out. Raises InputError if the environment raises."""
    state, observation = checked_reset(environment, problem)
    turns: list[Turn] = []
    total, agent = 0.0, 0
    for text in texts:
        after, seen, reward, terminated, truncated, info = checked_step(environment, problem, state, text)
        total += reward
        turns.append(
            Turn(
                state=state,
                observation=observation,
                text=text,
                action=str(info.get("action", text)),
                agent=agent,
                valid=bool(info.get("valid", True)),
                reward=reward,
                parts=info["parts"],
                value=info.get("value", total),
            )
        )
        if terminated or truncated:
            break
        state, observation, agent = after, seen, int(info.get("next", 0))
    return turns


def checked_reset(environment: Environment, problem: Problem) -> tuple[State, str]:
    """Return an episode's first state and observation. Raises InputError if `reset` fails or its state is not JSON."""
    with _errors_named(environment, problem, "reset"):
        state, observation = environment.reset(problem)
        json.dumps(state)
        return state, str(observation)


def checked_step(environment: Environment, problem: Problem, state: State, text: str) -> Step:
    """Return the environment's response to a text. Raises InputError if `step` fails or its state is not JSON."""
    with _errors_named(environment, problem, "step"):
        after, observation, reward, terminated, truncated, info = environment.step(state, text)
        json.dumps(after)
        if int(info.get("next", 0)) < 0:
            raise ValueError(f"next: {info['next']}, but agents are numbered from 0")
        known: dict[str, Any] = {**info, "parts": dict(info.get("parts", {}))}
        if "value" in known:
            known["value"] = float(known["value"])
        return after, str(observation), float(reward), bool(terminated), bool(truncated), known


@contextmanager
def _errors_named(environment: Environment, problem: Problem, method: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a user's environment can raise anything
        reason = " ".join(str(error).split())[:LONGEST]
        raise InputError(
            f"the environment {environment.name} failed in {method} of {problem.problem_id} "
            f"({type(error).__name__}: {reason}); mend it, and start the night again: it goes on where it was"
        ) from error
