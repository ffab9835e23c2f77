"""Episodes: what the trainer computes is what was sampled, and a lost part has the same bits again.

On a tiny engine in this process; on the real vLLM in `make test-full`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, EngineConfig, GrpoConfig, StudentConfig
from models.engine.environment import engine_environment
from models.hf.loading import load_tokenizer, prompt_tokens
from models.rollout import Rollout
from models.trainer import Trainer
from rewards.verifier import Problem
from tasks.rollouts.play import collect, play_turns
from tasks.rollouts.sample import sampled_rollouts
from tasks.rollouts.turns import spans
from tasks.stage import Artifact, committed, uncommit
from tasks.tables import PROMPTS
from tasks.workers import engine_process
from tasks.workers.worker import Worker
from tests.chaos import tiny_engine
from tests.models.support.tiny import trainer_config, write_tiny
from tests.rewards.patience import Patience
from tests.tasks.doubles.tables import write_stage
from tests.tasks.doubles.workers import InProcessWorker

SOURCE = BenchmarkConfig(name="tests.rewards.patience:Patience")
GRPO = GrpoConfig(group_size=3, max_completion_tokens=4)
ENGINE = EngineConfig(max_model_len=384, max_num_seqs=8, kv_cache_gb=0.1)
STUDENT = StudentConfig(system="")
TURNS = 9  # more than one part


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "0123456789abcdef0123", head_dim=32, context=512)


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


VLLM = pytest.param(vllm, marks=[pytest.mark.full, pytest.mark.engine], id="vllm")
on_vllm = pytest.mark.parametrize("engine", [VLLM], indirect=True)


@pytest.fixture(scope="module", params=[tiny, VLLM])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with request.param(tmp_path_factory.mktemp("logs")) as worker:
        yield worker


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, student: Path, engine: Any, prefect_server: Path) -> Path:
    """The folder of an engine's night, with two prompts."""
    folder, tokenizer = tmp_path_factory.mktemp("night"), load_tokenizer(student)
    rows = [_prompt(number, problem, tokenizer) for number, problem in enumerate(Patience().problems("train"))]
    write_stage(folder / "select_prompts", {"prompts": (PROMPTS, rows)})
    return folder


def _prompt(group: int, problem: Problem, tokenizer: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": Patience().reset(problem)[1]}]
    return {
        "problem_id": problem.problem_id,
        "group": group,
        "messages": "[]",
        "prompt_token_ids": prompt_tokens(tokenizer, messages, STUDENT),
        "question": problem.question,
        "kind": "patience",
        "source": "benchmark",
        "benchmark": problem.benchmark,
        "truth": "",
        "level": None,
        "entry": 0,
    }


def parts(night: Path, student: Path, engine: Any) -> list[Artifact]:
    found: list[Artifact] = []
    prompts = committed(night / "select_prompts")
    while not found or found[-1].figure("live"):
        found.append(
            play_turns(
                night,
                f"play-{len(found) + 1}",
                prompts=prompts,
                before=found[-1] if found else None,
                sources=(SOURCE,),
                checkpoint=student,
                grpo=GRPO,
                config=ENGINE,
                student=STUDENT,
                seed="1",
                engine=engine,
            )
        )
    return found


@pytest.fixture(scope="module")
def played(night: Path, student: Path, engine: Any) -> list[Rollout]:
    return sampled_rollouts(collect(night, "sample", parts=tuple(parts(night, student, engine))))


def test_an_episode_is_one_row_of_turns(played: list[Rollout]) -> None:
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


def test_the_trainers_log_probabilities_are_the_samplers_at_every_turn(played: list[Rollout], student: Path) -> None:
    trainer = Trainer.load(student, trainer_config())
    for rollout, found in zip(played, trainer.logprobs(played), strict=True):
        sampled = [value for value, mine in zip(rollout.sampler_logprobs, rollout.loss_mask, strict=True) if mine]
        assert found == pytest.approx(sampled, abs=0.05)


@on_vllm
def test_a_lost_part_has_the_same_bits_again(night: Path, student: Path, engine: Worker, played: list[Rollout]) -> None:
    whole = [artifact.digest for artifact in parts(night, student, engine)]
    engine.close()
    uncommit(night / "play-2")
    assert [artifact.digest for artifact in parts(night, student, engine)] == whole


@on_vllm
def test_an_episode_ends_where_the_context_is_full(night: Path, student: Path, engine: Worker) -> None:
    config = ENGINE.model_copy(update={"max_model_len": 128})
    engine.close()
    arguments: dict[str, Any] = {"prompts": committed(night / "select_prompts"), "before": None, "sources": (SOURCE,)}
    arguments |= {"checkpoint": student, "grpo": GRPO, "config": config, "student": STUDENT, "seed": "1"}
    part = play_turns(night, "full/play-1", **arguments, engine=engine)
    rollouts = sampled_rollouts(collect(night, "full/sample", parts=(part,)))
    assert {rollout.finish_reason for rollout in rollouts} == {"length"}
    for rollout in rollouts:
        assert 1 < len(spans(rollout)) < TURNS
        assert len(rollout.prompt_token_ids) + len(rollout.token_ids) <= 128
        assert rollout.loss_mask[-1]
