"""The sampler on the real vLLM: weights and adapters arrive, or the sync is refused. One proof is not `full`."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from conf.schema import EngineConfig, LoraConfig
from conf.storage.home import NightError
from models.engine.environment import CPU_BLOCK, engine_environment
from models.engine.sync_probe import PROBE_FILE, Probe, SyncError, read_probe, write_probe
from models.hf.checkpoint import base_of, keep, write_lineage
from models.hf.lora import load_adapter
from models.hf.merging import file_logprobs, merge
from models.rollout import Rollout
from models.trainer import Trainer
from tasks.workers.worker import Worker
from tests.models.support import engine_calls
from tests.models.support.malicious import write_malicious
from tests.models.support.tiny import (
    plain_logprobs,
    plain_model,
    random_tokens,
    sampled_groups,
    trainer_config,
    write_tiny,
)

pytestmark = pytest.mark.slow
full = pytest.mark.full

PROMPTS = [random_tokens(size, seed=size) for size in (3, 9, 20)]
LORA = LoraConfig(rank=4, alpha=8)
MODEL = "model.safetensors"

Tensors = dict[str, Tensor]
Change = Callable[[Tensors], Tensors]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def base(checkpoints: Path) -> Path:
    """As a hub has it: no probe."""
    draft = write_tiny(checkpoints / "draft", head_dim=32)
    write_lineage(draft, None)
    return keep(draft, checkpoints)


@pytest.fixture(scope="module")
def rounds(base: Path) -> tuple[Path, Path]:
    """Two rounds' checkpoints, one after the other, as the trainer writes them."""
    return tuple(kept(base, trainer_config(learning_rate=3e-3)))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def adapters(rounds: tuple[Path, Path]) -> tuple[Path, Path]:
    return tuple(kept(rounds[0], trainer_config(lora=LORA, learning_rate=3e-2)))  # type: ignore[return-value]


def kept(start: Path, config: Any) -> Iterator[Path]:
    trainer, parent = Trainer.load(start, config), start
    rollouts = sampled_groups(start, [[4, 5], [6, 3]])
    for _ in range(2):
        trainer.update(rollouts, [1.0, -1.0, 0.5, -0.5])
        draft = start.parent / "draft"
        if config.lora is None:
            trainer.save_checkpoint(draft)
            write_lineage(draft, parent.name)
        else:
            trainer.save_adapter(draft)
            write_lineage(draft, parent.name, start.name)
        parent = keep(draft, start.parent)
        yield parent


def engine(checkpoint: Path, logs: Path, lora: LoraConfig | None = None) -> Iterator[Worker]:
    with closing(Worker("engine", engine_environment(), logs / "engine.log")) as started:
        started.call(engine_calls.start, checkpoint, EngineConfig(max_model_len=96, max_num_seqs=16, lora=lora))
        yield started


@pytest.fixture(scope="module")
def plain(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    yield from engine(base, tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def serving(adapters: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """An engine that was restarted in the middle of a night of adapters."""
    yield from engine(adapters[0], tmp_path_factory.mktemp("logs"), LORA)


@pytest.fixture
def healthy(plain: Worker, base: Path, rounds: tuple[Path, Path]) -> Iterator[Worker]:
    """The engine with round 1 in it; whatever a test did to it, a healthy sync heals."""
    assert plain.call(engine_calls.load, rounds[0]) == rounds[0].name
    yield plain
    for checkpoint in (rounds[1], base):
        assert plain.call(engine_calls.load, checkpoint) == checkpoint.name
        assert agreement(plain, checkpoint) < 0.05


def agreement(engine: Worker, checkpoint: Path, trainer: Trainer | None = None) -> float:
    """Mean |log π − log μ| of tokens sampled from the engine, π by a trainer, or by transformers from the files."""
    groups = engine.call(engine_calls.sample, PROMPTS, 3)
    rollouts = [rollout for group in groups for rollout in group]
    assert {rollout.policy_digest for rollout in rollouts} == {checkpoint.name}
    if trainer is not None:
        return gap(trainer.logprobs(rollouts), rollouts)
    whole = [file_logprobs(checkpoint, [*r.prompt_token_ids, *r.token_ids]) for r in rollouts]
    return gap([own[len(r.prompt_token_ids) - 1 :] for own, r in zip(whole, rollouts, strict=True)], rollouts)


def gap(policy: list[list[float]], rollouts: list[Rollout]) -> float:
    rows = zip(policy, rollouts, strict=True)
    pairs = [pair for own, rollout in rows for pair in zip(own, rollout.sampler_logprobs, strict=True)]
    return sum(abs(one - other) for one, other in pairs) / len(pairs)


def altered(checkpoint: Path, folder: Path, change: Change) -> Path:
    """A copy of a checkpoint with other tensors; its probe stays."""
    shutil.copytree(checkpoint, folder)
    save_file(change(load_file(checkpoint / MODEL)), folder / MODEL, metadata={"format": "pt"})
    return folder


def test_log_probabilities_are_those_at_the_sampling_temperature(healthy: Worker, rounds: tuple[Path, Path]) -> None:
    groups = healthy.call(engine_calls.sample, PROMPTS, 3, 1, 1.6)
    rollouts = [rollout for group in groups for rollout in group]
    model = plain_model(rounds[0])
    with torch.no_grad():
        at = [[plain_logprobs(model, r.prompt_token_ids, r.token_ids, t).tolist() for r in rollouts] for t in (1.6, 1)]
    assert gap(at[0], rollouts) < 0.05 < gap(at[1], rollouts)


def test_a_sync_arrives_in_place_or_is_refused(healthy: Worker, rounds: tuple[Path, Path], tmp_path: Path) -> None:
    first = healthy.call(engine_calls.sample, PROMPTS, 4)
    assert agreement(healthy, rounds[0]) < 0.05
    with pytest.raises(SyncError, match="other values .*embed_tokens"):
        healthy.call(engine_calls.load_nothing, rounds[1])
    broken = altered(rounds[1], tmp_path / "broken", without("k_proj"))
    with pytest.raises(SyncError, match="nothing for .*qkv_proj"):
        healthy.call(engine_calls.load, broken)
    assert healthy.call(engine_calls.digest) == ""
    assert healthy.call(engine_calls.load, rounds[1]) == rounds[1].name
    assert agreement(healthy, rounds[1]) < 0.05
    assert healthy.call(engine_calls.sample, PROMPTS, 4) != first
    healthy.call(engine_calls.load, rounds[0])
    assert healthy.call(engine_calls.sample, PROMPTS, 4) == first


def test_what_prompts_begin_with_is_read_once(plain: Worker) -> None:
    """Whole blocks, of prompts that come together, too."""
    begun = random_tokens(CPU_BLOCK + 3, seed=1)
    prompts = [[*begun[:shared], *random_tokens(20, seed=shared)] for shared in (35, 33, CPU_BLOCK, CPU_BLOCK - 1)]
    assert plain.call(engine_calls.cached, prompts) == [0, CPU_BLOCK, CPU_BLOCK, 0]


@full
def test_what_slept_is_proven_again(healthy: Worker, rounds: tuple[Path, Path]) -> None:
    """And loaded again where it differs. First the weights wake up, then the cache."""
    woken, difference = healthy.call(engine_calls.use_after_a_bad_sleep, rounds[0])
    assert woken == ["weights", "kv_cache"]
    assert difference < 0.05
    assert agreement(healthy, rounds[0]) < 0.05


def without(name: str) -> Change:
    return lambda tensors: {key: tensor for key, tensor in tensors.items() if name not in key}


def in_dtype(dtype: torch.dtype) -> Change:
    return lambda tensors: {key: tensor.to(dtype) for key, tensor in tensors.items()}


def reinterpreted(tensors: Tensors) -> Tensors:
    """The bytes of another precision under the right one's name: the engine holds exactly what the file says."""
    return {key: tensor.half().view(torch.bfloat16).to(tensor.dtype) for key, tensor in tensors.items()}


def swapped(tensors: Tensors) -> Tensors:
    first, second = (f"model.layers.{layer}.self_attn.o_proj.weight" for layer in (0, 1))
    return tensors | {first: tensors[second].clone(), second: tensors[first].clone()}


@full
@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        (without("layers.0.mlp.up_proj"), engine_calls.load, "nothing for model.*gate_up_proj.weight; "),  # fused
        (without("layers.1.input_layernorm"), engine_calls.load, "nothing for model.*input_layernorm.weight; "),
        (without("embed_tokens"), engine_calls.load, "nothing for model.*embed_tokens.weight; "),  # and the tied head
        (in_dtype(torch.float16), engine_calls.load, r"wrong precision: \S+ \(float16, not"),
        (reinterpreted, engine_calls.load, "nats a token from the trainer's"),
        (swapped, engine_calls.load_without_readback, "nats a token from the trainer's"),  # the probe alone
    ],
)
def test_a_wrong_file_is_refused(
    healthy: Worker, rounds: tuple[Path, Path], tmp_path: Path, change: Change, how: Any, message: str
) -> None:
    broken = altered(rounds[1], tmp_path / "broken", change)
    with pytest.raises(SyncError, match=message):
        healthy.call(how, broken)
    assert healthy.call(engine_calls.digest) == ""


def nudged(tensors: Tensors) -> Tensors:
    return {k: (v.float() * 1.01).to(v.dtype) if "down_proj" in k else v for k, v in tensors.items()}


def turned(tensors: Tensors) -> Tensors:
    return {k: v.flip(0).contiguous() if "embed_tokens" in k else v for k, v in tensors.items()}


@full
@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        # nothing that the CPU's engine can read back differs, and the probe by less than two healthy implementations
        (nudged, engine_calls.load_nothing, "still computes what|other values"),
        # vLLM packs what a file names; a tied head is not named
        (
            turned,
            engine_calls.load_with_the_head_of_before,
            r"other values than the file for model\.embed_tokens\.weight; ",
        ),
    ],
)
def test_stale_weights_are_found(
    healthy: Worker, rounds: tuple[Path, Path], tmp_path: Path, change: Change, how: Any, message: str
) -> None:
    newer = altered(rounds[0], tmp_path / "newer", change)
    before = read_probe(newer)
    assert before is not None
    write_probe(newer, Probe(before.token_ids, file_logprobs(newer, before.token_ids)))
    with pytest.raises(SyncError, match=message):
        healthy.call(how, newer)
    assert healthy.call(engine_calls.load, newer) == "newer"
    assert agreement(healthy, newer) < 0.05


@full
def test_other_checkpoints_that_are_loaded(healthy: Worker, rounds: tuple[Path, Path], checkpoints: Path) -> None:
    """A round that took no step (another digest, the same values), and another program's in full precision."""
    skipped = shutil.copytree(rounds[0], checkpoints / "skipped")
    write_lineage(skipped, rounds[0].name)
    assert healthy.call(engine_calls.load, skipped) == "skipped"
    foreign = write_tiny(checkpoints / "foreign", dtype=torch.float32, head_dim=32)
    assert healthy.call(engine_calls.load, foreign) == "foreign"
    assert agreement(healthy, foreign) < 0.05


@full
def test_files_that_vllm_refuses(healthy: Worker, rounds: tuple[Path, Path], tmp_path: Path) -> None:
    unknown = altered(rounds[1], tmp_path / "unknown", lambda t: t | {"model.layers.7.norm.weight": torch.ones(3)})
    (unknown / PROBE_FILE).unlink()
    pickled = shutil.copytree(rounds[1], tmp_path / "pickled")
    (pickled / MODEL).unlink()
    write_malicious(pickled / "pytorch_model.bin", tmp_path / "code-was-run")
    for broken in (unknown, pickled):
        with pytest.raises(SyncError, match=f"{broken.name}.*vLLM could not load it"):
            healthy.call(engine_calls.load, broken)
    assert not (tmp_path / "code-was-run").exists()


@full
def test_adapters_bases_and_merged_checkpoints_in_any_order(
    serving: Worker, base: Path, rounds: tuple[Path, Path], adapters: tuple[Path, Path], checkpoints: Path
) -> None:
    assert serving.call(engine_calls.digest) == adapters[0].name
    draft = checkpoints / "draft"
    merge(base_of(adapters[1]), adapters[1], draft)
    write_lineage(draft, adapters[1].name)
    merged = keep(draft, checkpoints)
    trainers = {adapter: adapted_trainer(adapter) for adapter in adapters}
    seen: dict[Path, Any] = {}
    for checkpoint in (adapters[0], adapters[1], merged, base, adapters[1], rounds[0], adapters[0], merged, base):
        assert serving.call(engine_calls.load, checkpoint) == checkpoint.name
        groups = serving.call(engine_calls.sample, PROMPTS, 3)
        assert seen.setdefault(checkpoint, groups) == groups
        assert agreement(serving, checkpoint, trainers.get(checkpoint)) < 0.05
    assert seen[adapters[0]] != seen[adapters[1]] != seen[merged] != seen[rounds[0]]


def adapted_trainer(adapter: Path) -> Trainer:
    """A trainer that stands at an adapter."""
    trainer = Trainer.load(base_of(adapter), trainer_config(lora=LORA))
    load_adapter(trainer.model, adapter)
    return trainer


@full
def test_wrong_adapters_are_refused(serving: Worker, adapters: tuple[Path, Path]) -> None:
    """One that was not loaded, and one whose folder states another strength than the trainer's."""
    serving.call(engine_calls.load, adapters[0])
    with pytest.raises(SyncError, match="other values .*_proj.lora_"):
        serving.call(engine_calls.serve_the_last_adapter, adapters[1])
    assert serving.call(engine_calls.digest) == ""
    broken = shutil.copytree(adapters[1], adapters[1].with_name("broken"))
    config = broken / "adapter_config.json"
    config.write_text(config.read_text().replace('"lora_alpha": 8', '"lora_alpha": 64'))
    with pytest.raises(SyncError, match="nats a token from the trainer's"):
        serving.call(engine_calls.load, broken)
    assert serving.call(engine_calls.load, adapters[0]) == adapters[0].name


@full
def test_a_prompt_and_the_context(plain: Worker) -> None:
    """Room for one token gets one; no room is refused in one line, and nothing of that call stays behind."""
    before = plain.call(engine_calls.sample, PROMPTS, 2)
    assert all(r.token_ids and (r.finish_reason == "length" or r.token_ids[-1] == 1) for g in before for r in g)
    (found,) = plain.call(engine_calls.sample, [random_tokens(95, 1)], 2)
    assert [len(rollout.token_ids) for rollout in found] == [1, 1]
    for size in (0, 96, 200):
        with pytest.raises(NightError, match=f"{size} tokens.* 95"):
            plain.call(engine_calls.sample, [PROMPTS[0], random_tokens(size, 1)], 2)
    assert plain.call(engine_calls.sample, PROMPTS, 2) == before
