"""Play episodes in lockstep: one call of the engine writes the next turn of all unfinished episodes."""

import json
import pickle
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from conf.storage.home import InputError
from conf.storage.log import log
from models.hf.bridge import Bridge
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from models.transcript import Transcript, joined
from rewards.environment import Environment, State
from rewards.environments.episodes import checked_reset, checked_step
from rewards.verifier import Benchmark, Problem
from tasks.rollouts.verified import Player
from tasks.workers import engine_process
from tasks.workers.worker import Worker, WorkerDiedError

MOST_TURNS = 1000  # of an agent in an episode
LIMIT = 600.0  # seconds that a user's environment may take for one turn of all episodes


@dataclass
class Episode:
    """An episode while it is played. `state`: the environment's, as JSON. `texts`: the answers so far, in order.

    `transcripts`: one per agent that has had a turn; `agent` is the one that acts. `finish`: `stop` or `length`; empty
    while the episode is played.
    """

    problem: Problem
    group: int
    sample: int
    transcripts: list[Transcript]
    state: State = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    agent: int = 0
    finish: str = ""
    policy_digest: str = ""

    @property
    def acting(self) -> Transcript:
        """The transcript of the agent that acts."""
        return self.transcripts[self.agent]

    def rollout(self) -> Rollout:
        """Return the episode as one rollout for the trainer."""
        whole, finish = joined(self.transcripts), self.finish
        return Rollout(
            self.problem.problem_id,
            self.group,
            self.sample,
            whole.prompt,
            whole.token_ids,
            whole.sampler_logprobs,
            whole.loss_mask,
            finish,  # pyrefly: ignore[bad-argument-type]
            json.dumps(self.texts),
            self.policy_digest,
            whole.windows or None,
        )

    def wrote(self, answer: Rollout) -> None:
        """Append the model's answer."""
        self.acting.wrote(answer.token_ids, answer.sampler_logprobs, ended=answer.finish_reason == "stop")
        self.texts.append(answer.text)
        self.policy_digest = answer.policy_digest


class Game(AbstractContextManager["Game"]):
    """A context manager that runs the environment of a benchmark's episodes.

    A user's environment runs in a child process, which is killed if it hangs. `begin` and `step` raise InputError if
    the environment raises an error or does not answer in time.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        assert benchmark.environment is not None
        self.environment = benchmark.environment
        if not benchmark.bounded:
            _check_pickles(self.environment)
        self._worker = None if benchmark.bounded else Worker("environment", quiet=LIMIT, limit=LIMIT)

    def begin(self, episodes: Sequence[Episode]) -> None:
        """Give each episode its initial state."""
        states = self._call(first_states, [episode.problem for episode in episodes])
        for episode, state in zip(episodes, states, strict=True):
            episode.state = state

    def step(self, moves: Sequence[tuple[Problem, State, str]]) -> list[tuple[State, str, bool, int]]:
        """Make each move, as `next_states` does."""
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


def _check_pickles(environment: Environment) -> None:
    try:
        pickle.dumps(environment)
    except Exception as error:  # whatever its members raise
        raise InputError(
            f"the environment {environment.name} can't be pickled for its child process ({error}); "
            "keep no open files and no lambdas in it"
        ) from error


def first_states(environment: Environment, problems: Sequence[Problem]) -> list[State]:
    """Return the initial state of each problem's episode."""
    return [checked_reset(environment, problem)[0] for problem in problems]


def next_states(
    environment: Environment, moves: Sequence[tuple[Problem, State, str]]
) -> list[tuple[State, str, bool, int]]:
    """Make each move (problem, state, text). Return the state, observation, whether it is over, and who acts next."""
    steps = [checked_step(environment, *move) for move in moves]
    return [
        (state, seen, terminated or truncated, int(info.get("next", 0)))
        for state, seen, _, terminated, truncated, info in steps
    ]


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
    side_by_side = max(1, player.call(engine_process.kv_tokens) // player.config.max_model_len)
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
    groups, _ = player.write([episode.acting.context for episode in live], 1, seed=seed, fresh=fresh)
    answers = [group[0] for group in groups]
    moves = [(episode.problem, episode.state, answer.text) for episode, answer in zip(live, answers, strict=True)]
    for episode, answer, (state, observation, over, agent) in zip(live, answers, game.step(moves), strict=True):
        episode.wrote(answer)
        episode.state, episode.agent = state, agent
        if over:
            episode.finish = "stop"
        elif len(episode.texts) >= MOST_TURNS * len(episode.transcripts):
            raise InputError(
                f"the environment of {episode.problem.problem_id} has not ended the episode after {MOST_TURNS} turns; "
                "let `step` return truncated"
            )
        elif not _observes(episode, observation, bridge, player):
            episode.finish = "length"


def _observes(episode: Episode, observation: str, bridge: Bridge, player: Player) -> bool:
    """Show an observation to the agent that acts next. Return whether its context has room for that and an answer."""
    most = player.config.max_model_len - player.max_tokens
    if episode.agent > len(episode.transcripts):
        raise InputError(
            f"the environment of {episode.problem.problem_id} says that agent {episode.agent} is next, but only "
            f"{len(episode.transcripts)} have acted; number agents in the order of their first turns"
        )
    if episode.agent == len(episode.transcripts):  # its first turn
        prompt = prompt_tokens(bridge.tokenizer, [{"role": "user", "content": observation}], player.student)
        episode.transcripts.append(Transcript(prompt))
        return len(prompt) <= most
    return episode.acting.saw(bridge(observation, ended=episode.acting.ended), most)
