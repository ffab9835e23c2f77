"""Play episodes in lockstep: one call of the engine writes the next turn of all unfinished episodes."""

import json
import logging
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from conf.schema import EngineConfig, StudentConfig
from conf.storage.home import InputError
from models.hf.bridge import Bridge
from models.hf.loading import load_tokenizer
from models.rollout import Rollout
from models.windows import Window, context_of, window_of
from rewards.environment import Environment, State
from rewards.environments.episodes import checked_reset, checked_step
from rewards.verifier import Benchmark, Problem
from tasks.rollouts.verified import call_verified
from tasks.workers import engine_process
from tasks.workers.worker import Worker, WorkerDiedError

LIMIT = 600.0  # seconds that a user's environment may take for one turn of all episodes

log = logging.getLogger("nightschool")


@dataclass
class Episode:
    """An episode while it is played. `token_ids`: all tokens after the prompt. `state`: the environment's, as JSON.

    `loss_mask`, `sampler_logprobs`: as in `models/rollout.py`. `finish`: `stop` or `length`; empty while it is played.
    `seen`: where each observation begins in `token_ids`. `windows`: see `models/windows.py`.
    """

    problem: Problem
    group: int
    sample: int
    prompt: list[int]
    state: State = field(default_factory=dict)
    token_ids: list[int] = field(default_factory=list)
    sampler_logprobs: list[float] = field(default_factory=list)
    loss_mask: list[bool] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    finish: str = ""
    policy_digest: str = ""

    def rollout(self) -> Rollout:
        """Return the episode as one rollout for the trainer."""
        finish: Any = self.finish
        return Rollout(
            self.problem.problem_id,
            self.group,
            self.sample,
            self.prompt,
            self.token_ids,
            self.sampler_logprobs,
            self.loss_mask,
            finish,
            json.dumps(self.texts),
            self.policy_digest,
            self.windows or None,
        )

    @property
    def context(self) -> list[int]:
        """The tokens in front of the next answer."""
        return context_of(self.prompt, self.token_ids, self.windows)

    def wrote(self, answer: Rollout) -> None:
        """Append the model's answer."""
        self.token_ids += answer.token_ids
        self.sampler_logprobs += answer.sampler_logprobs
        self.loss_mask += answer.loss_mask
        self.texts.append(answer.text)
        self.policy_digest = answer.policy_digest

    def saw(self, tokens: Sequence[int], most: int) -> None:
        """Append the tokens of the environment's observation, masked out of the loss.

        If the context would be longer than `most` tokens, it begins anew with the latest turns. If even the observation
        does not fit, the episode ends.
        """
        first, length = len(self.token_ids), len(self.token_ids) + len(tokens)
        if len(self.context) + len(tokens) > most:
            window = window_of(len(self.prompt), [*self.seen, first], length, most)
            if window is None:
                self.finish = "length"
                return
            self.windows.append(window)
        self.seen.append(first)
        self.token_ids += tokens
        self.sampler_logprobs += [0.0] * len(tokens)
        self.loss_mask += [False] * len(tokens)


class Player(NamedTuple):
    """The model that plays: a checkpoint in an engine, which writes at most `max_tokens` tokens per turn."""

    checkpoint: Path
    student: StudentConfig
    config: EngineConfig
    engine: Worker
    max_tokens: int
    temperature: float


class Game(AbstractContextManager["Game"]):
    """A context manager that runs the environment of a benchmark's episodes.

    A user's environment runs in a child process, which is killed if it hangs. `begin` and `step` raise InputError if
    the environment raises an error or does not answer in time.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        assert benchmark.environment is not None
        self.environment = benchmark.environment
        self._worker = None if benchmark.bounded else Worker("environment", quiet=LIMIT)

    def begin(self, episodes: Sequence[Episode]) -> None:
        """Give each episode its initial state."""
        states = self._call(first_states, [episode.problem for episode in episodes])
        for episode, state in zip(episodes, states, strict=True):
            episode.state = state

    def step(self, moves: Sequence[tuple[Problem, State, str]]) -> list[tuple[State, str, bool]]:
        """Make each move (problem, state, text). Return the new state, observation, and whether the episode ended."""
        return self._call(next_states, moves)

    def __exit__(self, *_: Any) -> None:
        if self._worker is not None:
            self._worker.end(grace=0)

    def _call(self, function: Any, what: Any) -> Any:
        if self._worker is None:
            return function(self.environment, what)
        try:
            return self._worker.call(function, self.environment, what)
        except WorkerDiedError as error:
            raise InputError(f"the environment {self.environment.name} gave no answer: {error}; mend it") from error


def first_states(environment: Environment, problems: Sequence[Problem]) -> list[State]:
    """Return the initial state of each problem's episode."""
    return [checked_reset(environment, problem)[0] for problem in problems]


def next_states(environment: Environment, moves: Sequence[tuple[Problem, State, str]]) -> list[tuple[State, str, bool]]:
    """Make each move (problem, state, text). Return the new state, observation, and whether the episode ended."""
    steps = [checked_step(environment, *move) for move in moves]
    return [(state, seen, terminated or truncated) for state, seen, _, terminated, truncated, _ in steps]


def play(episodes: Sequence[Episode], game: Game, player: Player, seed: str, turns: int | None) -> None:
    """Play up to `turns` more turns of every unfinished episode (None: until all have ended), changing it in place.

    Whatever the engine did before, the same seed, checkpoint and episodes give the same turns, because its caches are
    reset before the first turn and then kept. To avoid computing tokens again, no more episodes are played in parallel
    than the key/value cache can hold. When an episode's context is full, it goes on with the latest turns; an
    episode with an observation that does not fit ends with `length`.
    """
    if all(episode.finish for episode in episodes):
        return
    tokenizer = load_tokenizer(player.checkpoint, player.student.trust_remote_code)
    bridge, full = Bridge(tokenizer, player.student), _full(episodes)
    arguments = (player.checkpoint, player.config, player.student.trust_remote_code)
    room = call_verified(player.engine, engine_process.kv_tokens, *arguments) // player.config.max_model_len
    side_by_side = max(1, room)
    for start in range(0, len(episodes), side_by_side):
        chunk, turn = episodes[start : start + side_by_side], 0
        while (live := [one for one in chunk if not one.finish]) and turn != turns:
            _turn(live, game, player, bridge, random.Random(f"{seed} {start} {turn}").getrandbits(31), turn == 0)
            turn += 1
    if ended := _full(episodes) - full:
        log.warning("%d episodes ended because the context was full: raise engine.max_model_len", ended)


def _full(episodes: Sequence[Episode]) -> int:
    return sum(episode.finish == "length" for episode in episodes)


def _turn(live: Sequence[Episode], game: Game, player: Player, bridge: Bridge, seed: int, fresh: bool) -> None:
    groups, _ = call_verified(
        player.engine,
        engine_process.sample,
        player.checkpoint,
        player.config,
        [episode.context for episode in live],
        1,
        seed=seed,
        temperature=player.temperature,
        max_tokens=player.max_tokens,
        trust_remote_code=player.student.trust_remote_code,
        fresh=fresh,
    )
    answers = [group[0] for group in groups]
    moves = [(episode.problem, episode.state, answer.text) for episode, answer in zip(live, answers, strict=True)]
    for episode, answer, (state, observation, over) in zip(live, answers, game.step(moves), strict=True):
        episode.wrote(answer)
        episode.state = state
        if over:
            episode.finish = "stop"
            continue
        following = bridge(observation, ended=answer.finish_reason == "stop")
        episode.saw(following, player.config.max_model_len - player.max_tokens)
