"""Adapters: what is adapted, their folder, and that merging keeps what was learned."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from peft.tuners.lora import LoraLayer
from safetensors.torch import load_file
from torch import Tensor

from conf.schema import LoraConfig
from models.engine.sync_probe import PROBE_FILE, read_probe
from models.hf import merging
from models.hf.checkpoint import MergeError, digest_folder
from models.hf.loading import load_model
from models.hf.lora import attach, merged_weights
from models.hf.merging import file_logprobs, merge
from models.trainer import Trainer
from tests.models.support.tiny import PRECISION, plain_model, sampled_groups, trainer_config, write_tiny

CPU = torch.device("cpu")
CONFIG = LoraConfig(rank=4, alpha=8)
ADVANTAGES = [1.0, -1.0, 0.5, -0.5]


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / request.param, request.param)


def stir(model: torch.nn.Module) -> None:
    torch.manual_seed(4)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)


def logits(model: Any) -> Tensor:
    ids = torch.arange(2, 14)[None]
    with torch.no_grad():
        return model(input_ids=ids).logits


def test_every_linear_layer_but_head_and_embeddings(folder: Path) -> None:
    model = plain_model(folder)
    attach(model, CONFIG)
    adapted = {name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, LoraLayer)}
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert sum(isinstance(module, LoraLayer) for module in model.modules()) == 2 * 7
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert len(trained) == 2 * 7 * 2
    assert all(".lora_A." in name or ".lora_B." in name for name in trained)


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")
@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_head_and_embeddings_are_refused(folder: Path, target: str) -> None:
    with pytest.raises(ValueError, match="the embeddings or the head"):
        attach(plain_model(folder), LoraConfig(targets=("q_proj", target)))


@torch.no_grad()
def test_a_merge_rounds_the_exact_sum_once(folder: Path) -> None:
    """base + (alpha / rank) B A in fp32, then to bf16 up or down: the product is not rounded by itself before."""
    model = load_model(folder, torch.bfloat16, CPU)
    base = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    attach(model, CONFIG)
    stir(model)
    state, merged = model.state_dict(), merged_weights(model, seeded(1))
    assert merged.keys() == base.keys()
    for name, tensor in base.items():
        down, up = (state.get(name.replace(".weight", f".lora_{side}.default.weight")) for side in "AB")
        delta = 0.0 if down is None or up is None else 2.0 * (up.float() @ down.float())
        exact = tensor.float() + delta
        assert ((merged[name].float() - exact).abs() <= 2.0**-7 * exact.abs()).all()


@torch.no_grad()
def test_a_merge_keeps_small_adapters_in_expectation(folder: Path) -> None:
    """Those that add an eighth of the last place, 2 · 4 · 2⁻¹³ to 1, whose next number is 1 + 2⁻⁷. Rounding to nearest
    would lose them.
    """
    model = load_model(folder, torch.bfloat16, CPU)
    attach(model, CONFIG)
    adapted: dict[str, Any] = {name: m for name, m in model.named_modules() if isinstance(m, LoraLayer)}
    for layer in adapted.values():
        layer.get_base_layer().weight.fill_(1.0)
        layer.lora_A["default"].weight.fill_(1.0)
        layer.lora_B["default"].weight.fill_(2.0**-13)
    before = {name: tensor for name, tensor in model.state_dict().items() if ".lora_" not in name}
    one, again, other = (merged_weights(model, seeded(seed)) for seed in (1, 1, 2))
    for name, tensor in one.items():
        if name.removesuffix(".weight") in adapted:
            assert not one[name].equal(other[name])
        else:
            assert before[name].equal(tensor)
        assert again[name].equal(tensor)
    moved = torch.cat([one[f"{name}.weight"].float().flatten() - 1.0 for name in adapted])
    assert set(moved.tolist()) == {0.0, 2.0**-7}
    assert float(moved.mean()) == pytest.approx(2.0**-10, rel=0.11)  # five standard errors of 15,000 weights


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def studied(folder: Path, **changes: Any) -> Trainer:
    config = trainer_config(lora=CONFIG.model_copy(update=changes), learning_rate=0.05)
    trainer = Trainer.load(folder, config)
    for _ in range(2):
        trainer.update(sampled_groups(folder, [[4, 5], [6, 3]]), ADVANTAGES)
    return trainer


def test_an_adapters_folder_is_pefts_own_and_always_the_same(folder: Path, tmp_path: Path) -> None:
    """peft's own loader puts it onto the plain model, which then computes the same."""
    trainer = studied(folder)
    trainer.save_adapter(tmp_path)
    digest = digest_folder(tmp_path)
    studied(folder).save_adapter(tmp_path)  # the order of sets, which differs by process, is gone
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(config["target_modules"])
    assert (config["r"], config["lora_alpha"], config["bias"]) == (4, 8, "none")
    assert digest_folder(tmp_path) == digest
    assert {file.name for file in tmp_path.iterdir()} == {
        "adapter_model.safetensors",
        "adapter_config.json",
        PROBE_FILE,
    }
    assert {tensor.dtype for tensor in load_file(tmp_path / "adapter_model.safetensors").values()} == {PRECISION}
    again = PeftModel.from_pretrained(plain_model(folder), tmp_path)
    adapted = plain_model(folder)
    attach(adapted, CONFIG)
    own = {name: tensor.float() for name, tensor in trainer.model.state_dict().items() if ".lora_" in name}
    assert len(own) == 2 * 7 * 2
    adapted.load_state_dict(own, strict=False)
    assert logits(again).equal(logits(adapted))
    assert (logits(again) - logits(plain_model(folder))).abs().max() > 0.1


def test_an_adapter_merged_from_its_folder(folder: Path, tmp_path: Path) -> None:
    trainer = studied(folder)
    trainer.save_adapter(tmp_path / "adapter")
    merge(folder, tmp_path / "adapter", tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("adapter*"))
    assert load_file(tmp_path / "merged" / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    expected = merged_weights(trainer.model, seeded(int(digest_folder(tmp_path / "adapter")[:15], 16)))
    merged: Any = plain_model(tmp_path / "merged", dtype=PRECISION)
    assert all(tensor.equal(expected[name]) for name, tensor in merged.state_dict().items())
    adapted, proven = read_probe(tmp_path / "adapter"), read_probe(tmp_path / "merged")
    assert adapted is not None
    assert proven is not None
    assert adapted.token_ids == proven.token_ids
    assert adapted.difference(proven.logprobs) < 0.05
    assert adapted.difference(file_logprobs(folder, adapted.token_ids)) > 0.15  # of the base it could not be proven


@pytest.mark.parametrize("how", ["nothing added", "twice", "one layer without"])
def test_a_wrong_merge_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    trainer = studied(folder)
    trainer.save_adapter(tmp_path / "adapter")
    base: Any = plain_model(folder, dtype=PRECISION).state_dict()
    right = merged_weights(trainer.model, seeded(1))
    share = {"nothing added": 0.0, "twice": 2.0, "one layer without": 1.0}[how]

    def wrong(model: Any, generator: torch.Generator) -> dict[str, Tensor]:
        found = {name: base[name] + share * (tensor - base[name]) for name, tensor in right.items()}
        return found | ({k: v for k, v in base.items() if ".layers.0." in k} if how == "one layer without" else {})

    monkeypatch.setattr(merging, "merged_weights", wrong)
    with pytest.raises(MergeError, match=r"differ from the adapters' by \d\.\d{3} nats a token, more than"):
        merge(folder, tmp_path / "adapter", tmp_path / "merged")
    assert read_probe(tmp_path / "merged") is None
