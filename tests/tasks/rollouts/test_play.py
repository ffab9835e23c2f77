"""Episodes: what the trainer computes is what was sampled, and a lost part has the same bits again.

On a tiny engine in this process; on the real vLLM in `make test-full`.
"""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, EngineConfig, GrpoConfig, StudentConfig
from conf.storage.home import InputError
from models.engine.environment import engine_environment
from models.hf.loading import load_tokenizer, prompt_tokens
from models.packing.batches import rollout_logprobs
from models.rollout import Rollout
from models.trainer import Trainer
from models.transcript import contexts
from rewards.environments.ants import Ants
from rewards.environments.episodes import Episodes
from rewards.verifier import Attempt, Problem
from tasks.rollouts.play import collect, play_turns
from tasks.rollouts.sample import sampled_rollouts
from tasks.rollouts.score import spans, turn_rows
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, committed, uncommit
from tasks.tables import PROMPTS
from tasks.workers import engine_process
from tasks.workers.worker import Worker
from tests.chaos import tiny_engine
from tests.models.support.tiny import trainer_config, write_tiny
from tests.rewards.countdown import Patience
from tests.tasks.doubles.tables import prompt, write_stage
from tests.tasks.doubles.workers import InProcessWorker

SOURCE = BenchmarkConfig(name="tests.rewards.countdown:Patience")
GRPO = GrpoConfig(group_size=3, max_completion_tokens=4, temperature=1.6)
ENGINE = EngineConfig(max_model_len=384, max_num_seqs=8, kv_cache_gb=0.1)
STUDENT = StudentConfig(system="")
TURNS = 9  # more than one part


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "0123456789abcdef0123", head_dim=32, context=1024)


@contextmanager
def tiny(folder: Path) -> Iterator[InProcessWorker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "models.sampler", tiny_engine)
        patch.setattr(engine_process, "_sampler", None)
        yield InProcessWorker()


@contextmanager
def vllm(folder: Path) -> Iterator[Worker]:
    worker = Worker("engine", engine_environment(), folder / "engine.log")
    yield worker
    worker.close()


VLLM = pytest.param(vllm, marks=pytest.mark.full, id="vllm")
on_vllm = pytest.mark.parametrize("engine", [VLLM], indirect=True)


@pytest.fixture(scope="module", params=[tiny, VLLM])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with request.param(tmp_path_factory.mktemp("logs")) as worker:
        yield worker


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, student: Path, engine: Any, prefect_server: None) -> Path:
    """The folder of an engine's night, with two prompts."""
    folder, tokenizer = tmp_path_factory.mktemp("night"), load_tokenizer(student)
    rows = [_prompt(number, problem, tokenizer) for number, problem in enumerate(Patience().problems("train"))]
    write_stage(folder / "select_prompts", {"prompts": (PROMPTS, rows)})
    return folder


def _prompt(group: int, problem: Problem, tokenizer: Any, game: Any = None) -> dict[str, Any]:
    messages = [{"role": "user", "content": (game or Patience()).reset(problem)[1]}]
    asked = {"question": problem.question, "prompt_token_ids": prompt_tokens(tokenizer, messages, STUDENT)}
    return prompt(problem.problem_id, group, "", benchmark=problem.benchmark, kind="patience", level=None) | asked


def parts(
    night: Path,
    student: Path,
    engine: Any,
    config: EngineConfig = ENGINE,
    sources: tuple[BenchmarkConfig, ...] = (SOURCE,),
) -> list[Artifact]:
    found: list[Artifact] = []
    prompts = committed(night / "select_prompts")
    while not found or found[-1].figure("live"):
        found.append(
            play_turns(
                night,
                f"{config.max_model_len}/play-{len(found) + 1}",
                prompts=prompts,
                before=found[-1] if found else None,
                sources=sources,
                player=Player(student, STUDENT, config, engine, GRPO.max_completion_tokens, GRPO.temperature),
                size=GRPO.group_size,
                seed="1",
            )
        )
    return found


class Ahead(Patience):
    """Lets an agent act before the one in front of it."""

    def step(self, state: Any, text: str) -> Any:
        after: tuple[Any, ...] = super().step(state, text)
        return *after[:5], {"next": 2}


class Sealed(Patience):
    """Can't be sent to a process of its own."""

    def __init__(self) -> None:
        self.say = lambda: "hm"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (Ahead, "says that agent 2 is next, but only 1 have acted"),
        (Patience, "has not ended the episode after 3 turns"),
        (Sealed, "the environment patience can't be pickled"),
    ],
)
def test_what_an_environment_may_not_do(
    environment: Any, message: str, night: Path, student: Path, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.rollouts.episodes.MOST_TURNS", 3)
    own = Episodes(environment(), bounded=environment is not Sealed)
    monkeypatch.setattr("tasks.rollouts.play.configured", lambda _: own)
    with pytest.raises(InputError, match=message):
        parts(night, student, engine, ENGINE.model_copy(update={"max_model_len": 385}))


class Hasty(Patience):
    """Another environment with the same name."""

    def reset(self, problem: Problem) -> tuple[dict[str, Any], str]:
        return super().reset(problem)[0] | {"left": 1}, "Wait a moment"


def test_each_environment_plays_the_prompts_of_its_own_entry(
    tmp_path: Path, student: Path, engine: Any, prefect_server: None
) -> None:
    """Whatever names the environment and its problems have."""
    tokenizer, sources = load_tokenizer(student), (SOURCE, BenchmarkConfig(name=f"{__name__}:Hasty"))
    problem = replace(Patience().problems("train")[0], benchmark="elsewhere")
    rows = [_prompt(group, problem, tokenizer) | {"entry": group} for group in range(2)]
    write_stage(tmp_path / "select_prompts", {"prompts": (PROMPTS, rows)})
    found = parts(tmp_path, student, engine, restarted(engine, 384), sources)
    turns = {
        (rollout.group, len(spans(rollout)))
        for rollout in sampled_rollouts(collect(tmp_path, "all", parts=tuple(found)))
    }
    assert turns == {(0, TURNS), (1, 1)}


def restarted(engine: Any, context: int) -> EngineConfig:
    if isinstance(engine, Worker):
        engine.close()
    return ENGINE.model_copy(update={"max_model_len": context})


@pytest.fixture(scope="module")
def played(night: Path, student: Path, engine: Any) -> list[Rollout]:
    return sampled_rollouts(collect(night, "sample", parts=tuple(parts(night, student, engine))))


def test_an_episode_is_one_row_of_turns_whose_log_probabilities_the_trainer_computes(
    played: list[Rollout], student: Path
) -> None:
    assert len(played) == 2 * GRPO.group_size
    for rollout in played:
        assert rollout.finish_reason == "stop"
        assert len(spans(rollout)) == TURNS
        assert rollout.loss_mask[-1]
        assert all(
            logprob == 0.0
            for logprob, mine in zip(rollout.sampler_logprobs, rollout.loss_mask, strict=True)
            if not mine
        )
    assert_trainer_agrees(played, student)


def assert_trainer_agrees(played: list[Rollout], student: Path) -> None:
    """The trainer's log-probabilities are the sampler's at every turn."""
    trainer = Trainer.load(student, trainer_config())
    expected = rollout_logprobs(trainer.model, trainer.token_logprobs, played, 2048, GRPO.temperature)
    for rollout, found in zip(played, expected, strict=True):
        sampled = [value for value, mine in zip(rollout.sampler_logprobs, rollout.loss_mask, strict=True) if mine]
        assert found == pytest.approx(sampled, abs=0.05)


@on_vllm
def test_a_lost_part_has_the_same_bits_again(night: Path, student: Path, engine: Worker, played: list[Rollout]) -> None:
    whole = [artifact.digest for artifact in parts(night, student, engine)]
    engine.close()
    uncommit(night / f"{ENGINE.max_model_len}/play-2")
    assert [artifact.digest for artifact in parts(night, student, engine)] == whole


def test_an_episode_longer_than_the_context_goes_on_with_its_latest_turns(
    night: Path, student: Path, engine: Any
) -> None:
    short = restarted(engine, 128)
    rollouts = sampled_rollouts(collect(night, "short/sample", parts=tuple(parts(night, student, engine, short))))
    for rollout in rollouts:
        assert rollout.finish_reason == "stop"
        assert len(spans(rollout)) == TURNS
        assert rollout.windows
        cut = contexts(rollout.prompt_token_ids, rollout.token_ids, rollout.windows, rollout.loss_mask)
        assert sum(sum(rollout.loss_mask[span]) for _, span in cut) == rollout.written
        for before, span in cut:
            assert before[: len(rollout.prompt_token_ids)] == rollout.prompt_token_ids
            assert len(before) + span.stop - span.start <= short.max_model_len
    assert_trainer_agrees(rollouts, student)
    trainer = Trainer.load(student, trainer_config())
    assert trainer.update(rollouts, [float(rollout.sample) - 1 for rollout in rollouts])["skipped"] == 0


class Colony(Ants):
    """Three ants with three turns each."""

    def __init__(self) -> None:
        super().__init__(turns=3, ants=3)


def test_each_ant_of_a_colony_has_a_context_of_its_own(
    tmp_path: Path, student: Path, engine: Any, prefect_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, ants = load_tokenizer(student), Colony()
    colony = Episodes(ants, bounded=True)
    monkeypatch.setattr("tasks.rollouts.play.configured", lambda _: colony)
    row = _prompt(0, ants.problems("train")[0], tokenizer, ants)
    write_stage(tmp_path / "select_prompts", {"prompts": (PROMPTS, [row])})
    found = parts(tmp_path, student, engine, restarted(engine, 1024))
    rollouts = sampled_rollouts(collect(tmp_path, "sample", parts=tuple(found)))
    for rollout in rollouts:
        cut = contexts(rollout.prompt_token_ids, rollout.token_ids, rollout.windows or (), rollout.loss_mask)
        texts: list[Any] = [tokenizer.decode([*before, *rollout.token_ids[span]]) for before, span in cut]
        seen: list[set[str]] = [set(re.findall(r"ant (\d)", text)) for text in texts]
        assert set().union(*seen) == {"1", "2", "3"}
        assert {len(ants) for ants in seen} == {1}
        (score,) = colony.score([Attempt(ants.problems("train")[0], rollout.text)])
        rows = list(turn_rows(rollout, score))
        assert len(rows) == 3 * 3
        for number, one in enumerate(rows):
            answer = rollout.token_ids[one["first"] : one["first"] + one["tokens"]]
            end, said = tokenizer.eos_token, json.loads(rollout.text)[number]
            assert tokenizer.decode(answer).removesuffix(end) == said.removesuffix(end)  # vLLM's text has no end token
    assert_trainer_agrees(rollouts, student)


def test_an_episode_ends_if_an_observation_does_not_fit(night: Path, student: Path, engine: Any) -> None:
    (part,) = parts(night, student, engine, restarted(engine, 64))
    for rollout in sampled_rollouts(collect(night, "tiny/sample", parts=(part,))):
        assert rollout.finish_reason == "length"
        assert len(spans(rollout)) < TURNS
        assert rollout.loss_mask[-1]
