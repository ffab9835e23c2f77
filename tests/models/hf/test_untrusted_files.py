"""A student's folder that somebody else made: nothing in it is run, neither a pickle's code nor the model's own."""

import json
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
import torch

from conf.storage.home import NightError
from models.hf.checkpoint import base_of
from models.hf.loading import load_model, load_tokenizer
from models.hf.merging import file_logprobs
from tasks.registry.import_model import check_student
from tests.models.support.malicious import write_malicious
from tests.models.support.tiny import write_tiny
from tests.refusal import refusal

CPU = torch.device("cpu")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file that is there as soon as any code of the folder was run."""
    return tmp_path / "code-was-run"


@pytest.fixture
def pickled(tmp_path: Path, trace: Path) -> Path:
    """A student whose weights are a pickle, and a malicious one."""
    folder = write_tiny(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    write_malicious(folder / "pytorch_model.bin", trace)
    return folder


def test_a_pickle_is_never_loaded(pickled: Path, trace: Path) -> None:
    """Though the one here would run code, as its own proof at the end shows."""
    with pytest.raises(OSError, match="safetensors"):
        load_model(pickled, torch.bfloat16, CPU)
    with pytest.raises(OSError, match="safetensors"):
        file_logprobs(pickled, [2, 3, 4])
    assert not trace.exists()
    torch.load(pickled / "pytorch_model.bin", weights_only=False)
    assert trace.exists()


def test_beside_safetensors_it_is_not_looked_at(pickled: Path, trace: Path) -> None:
    sound = write_tiny(pickled.parent / "sound")
    (sound / "model.safetensors").rename(pickled / "model.safetensors")
    check_student(pickled)
    assert load_model(pickled, torch.bfloat16, CPU).num_parameters() > 0
    assert not trace.exists()


def test_a_student_in_a_pickle_is_refused_with_the_way_to_convert_it(pickled: Path, trace: Path) -> None:
    message = refusal(check_student, pickled)
    assert message.startswith(f"student.source: {pickled}/pytorch_model.bin: pickled weights, which can run code when")
    assert "save_pretrained" in message
    assert not trace.exists()


@pytest.fixture
def own_code(tmp_path: Path, trace: Path) -> Path:
    """A student with code of its own for configuration, model and tokenizer, each of which leaves the trace."""
    folder = write_tiny(tmp_path / "own")
    for module in ("configuration_own", "modeling_own", "tokenization_own"):
        (folder / f"{module}.py").write_text(f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n")
    maps = {"AutoConfig": "configuration_own.Own", "AutoModelForCausalLM": "modeling_own.Own"}
    for name, auto in (("config", maps), ("tokenizer_config", {"AutoTokenizer": ["tokenization_own.Own", None]})):
        file = folder / f"{name}.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"auto_map": auto}))
    return folder


@pytest.mark.parametrize("model_type", ["llama", "own"])
def test_code_that_comes_along_is_not_run(own_code: Path, trace: Path, model_type: str) -> None:
    """Where transformers knows the model it takes its own code, else it refuses."""
    file = own_code / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"model_type": model_type}))
    refusal = pytest.raises(ValueError, match="trust_remote_code") if model_type == "own" else nullcontext()
    with refusal:
        load_model(own_code, torch.bfloat16, CPU)
    with suppress(ValueError):  # the tokenizer may be a known one all the same
        load_tokenizer(own_code)
    assert not trace.exists()


@pytest.mark.parametrize("base", ["../../elsewhere", "..", "/etc", "", "a/b"])
def test_an_adapter_whose_base_would_lie_elsewhere(tmp_path: Path, base: str) -> None:
    adapter = tmp_path / "checkpoints" / "0a1b"
    adapter.mkdir(parents=True)
    (adapter / "nightschool.json").write_text(json.dumps({"version": 1, "parent": None, "base": base}))
    with pytest.raises(NightError, match="is not a valid name here"):
        base_of(adapter)
