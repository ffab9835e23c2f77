"""Loading models and tokenizers, conversations as tokens, tokenizers that differ, and the starter model."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, dynamic_module_utils

from conf.schema import StudentConfig, TrainerConfig
from models.hf.loading import (
    PLAIN_TEMPLATE,
    answer_text,
    answer_tokens,
    check_config,
    check_tokenizers,
    encode,
    load_tokenizer,
    prompt_tokens,
)
from models.trainer import Trainer
from tests.models.support.tiny import END, write_tiny, write_tokenizer
from tests.refusal import refusal

DEFAULT = StudentConfig()
ASKED = [{"role": "user", "content": "2+2?"}]


def rendered(folder: Path, messages: list[dict[str, str]], student: StudentConfig = DEFAULT) -> Any:
    tokenizer = load_tokenizer(folder)
    tokens = prompt_tokens(tokenizer, messages, student)
    assert all(isinstance(token, int) for token in tokens)
    return tokenizer.decode(tokens)


def test_a_conversation_up_to_where_the_assistant_begins(folder: Path) -> None:
    messages = [dict(message) for message in ASKED]
    assert rendered(folder, messages) == "<user>2+2?\n<assistant>"
    longer = [*messages, {"role": "assistant", "content": "5"}, {"role": "user", "content": "No."}]
    assert rendered(folder, longer) == "<user>2+2?\n<assistant>5\n<user>No.\n<assistant>"
    system = StudentConfig(system="Be brief.", template_arguments={"speaker": "tutor"})
    assert rendered(folder, messages, system) == "<system>Be brief.\n<user>2+2?\n<tutor>"
    assert messages == ASKED


def test_a_base_model_gets_the_plain_template(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, template=False)
    assert load_tokenizer(tmp_path).chat_template == PLAIN_TEMPLATE
    system = StudentConfig(system="Be brief.")
    assert rendered(tmp_path, ASKED, system) == "System: Be brief.\nUser: 2+2?\nAssistant:"


def test_an_answer_ends_with_the_end_token(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    tokens = answer_tokens(tokenizer, "It is 4.")
    assert tokenizer.decode(tokens) == f"It is 4.{END}"
    assert tokens[-1] == tokenizer.eos_token_id
    assert answer_tokens(tokenizer, "") == [tokenizer.eos_token_id]


CODE = {
    "configuration_own.py": """
from transformers import LlamaConfig

class OwnConfig(LlamaConfig):
    model_type = "own"
""",
    "modeling_own.py": """
from transformers import LlamaForCausalLM
from .configuration_own import OwnConfig

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
""",
}


@pytest.fixture(scope="module")
def _code_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where transformers copies a model's code before it runs it: not into the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        patch.setattr(sys, "path", [*sys.path])
        yield


@pytest.fixture
def own_code(tmp_path: Path, _code_cache: None) -> Path:
    """A student that transformers knows only by the code that comes with it."""
    folder = write_tiny(tmp_path / "own")
    for name, code in CODE.items():
        (folder / name).write_text(code)
    config = json.loads((folder / "config.json").read_text())
    kinds = {"AutoConfig": "configuration_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    own = {"model_type": "own", "architectures": ["OwnForCausalLM"], "auto_map": kinds}
    (folder / "config.json").write_text(json.dumps(config | own))
    return folder


def test_code_that_comes_with_a_model_runs_only_where_it_is_trusted(own_code: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trust_remote_code"):
        check_config(own_code)
    check_config(own_code, trust_remote_code=True)
    assert load_tokenizer(own_code, trust_remote_code=True).eos_token == END
    with pytest.raises(ValueError, match="trust_remote_code"):
        Trainer.load(own_code, TrainerConfig(device="cpu"))
    config = TrainerConfig(device="cpu", trust_remote_code=True)
    trainer = Trainer.load(own_code, config)
    assert type(trainer.model).__name__ == "OwnForCausalLM"
    trainer.save_checkpoint(tmp_path / "next")
    assert {*CODE} <= {file.name for file in (tmp_path / "next").iterdir()}
    assert Trainer.load(tmp_path / "next", config).step == 0


# --- tokenizers


def _other_number(tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    words = tokenizer["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]


def _other_cut(tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    """The same vocabulary and ids, but split at white space."""
    tokenizer["pre_tokenizer"] = {"type": "WhitespaceSplit"}


def _other_end(tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    config["eos_token"] = config["pad_token"] = "<unknown>"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_other_number, "their vocabularies (79 and 79 tokens) differ"),
        (_other_cut, "they split the same text into different tokens"),
        (_other_end, f"their end tokens ('{END}' and '<unknown>') differ"),
    ],
)
def test_another_tokenizer_is_refused(folder: Path, teacher: Path, tmp_path: Path, change: Any, what: str) -> None:
    check_tokenizers(folder, teacher, "on_policy.teacher")
    other = shutil.copytree(teacher, tmp_path / "other")
    files = [other / "tokenizer.json", other / "tokenizer_config.json"]
    contents = [json.loads(file.read_text()) for file in files]
    change(*contents)
    for file, content in zip(files, contents, strict=True):
        file.write_text(json.dumps(content))
    line = refusal(check_tokenizers, folder, other, "on_policy.teacher")
    assert line.startswith(f"on_policy.teacher: {other}: its tokenizer is not the student's: {what}")


def test_an_answer_that_is_cut_within_a_character_ends_before_it() -> None:
    bytewise = ByteLevelBPETokenizer()
    bytewise.train_from_iterator([])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise)
    owl, tokens = "An owl, \N{OWL}.", encode(tokenizer, "An owl, \N{OWL}.")
    assert len(tokens) == len(owl.encode())
    cuts = [answer_text(tokenizer, tokens[:length]) for length in range(len(tokens) + 1)]
    assert cuts == [owl.encode()[:length].decode(errors="ignore") for length in range(len(tokens) + 1)]
