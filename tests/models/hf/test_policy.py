"""The student as Hugging Face knows it: conversations to tokens, with a template, without one, and whose arguments."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import dynamic_module_utils

from conf.schema import StudentConfig, TrainerConfig
from models.hf.loading import PLAIN_TEMPLATE, answer_tokens, check_config, load_model, load_tokenizer, prompt_tokens
from models.trainer import Trainer
from tests.models.support.tiny import END, write_tiny, write_tokenizer

DEFAULT = StudentConfig()
ASKED = [{"role": "user", "content": "2+2?"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


def rendered(folder: Path, messages: list[dict[str, str]], student: StudentConfig = DEFAULT) -> Any:
    tokenizer = load_tokenizer(folder)
    tokens = prompt_tokens(tokenizer, messages, student)
    assert all(isinstance(token, int) for token in tokens)
    return tokenizer.decode(tokens)


def test_a_conversation_up_to_where_the_assistant_begins(folder: Path) -> None:
    assert rendered(folder, ASKED) == "<user>2+2?\n<assistant>"
    longer = [*ASKED, {"role": "assistant", "content": "5"}, {"role": "user", "content": "No."}]
    assert rendered(folder, longer) == "<user>2+2?\n<assistant>5\n<user>No.\n<assistant>"


def test_the_system_text_comes_first(folder: Path) -> None:
    assert rendered(folder, ASKED, StudentConfig(system="Be brief.")) == "<system>Be brief.\n<user>2+2?\n<assistant>"
    assert rendered(folder, ASKED, StudentConfig(system="")).startswith("<system>\n")


def test_arguments_reach_the_template(folder: Path) -> None:
    student = StudentConfig(template_arguments={"speaker": "tutor"})
    assert rendered(folder, ASKED, student) == "<user>2+2?\n<tutor>"


def test_the_callers_messages_stay_as_they_were(folder: Path) -> None:
    messages = [dict(message) for message in ASKED]
    rendered(folder, messages, StudentConfig(system="Be brief."))
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


def test_the_model_in_the_precision_asked_for(folder: Path) -> None:
    model: Any = load_model(folder, torch.bfloat16, torch.device("cpu"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_a_missing_folder_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        load_model(tmp_path / "missing", torch.bfloat16, torch.device("cpu"))


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


def test_code_that_comes_with_a_model_runs_only_where_it_is_trusted(own_code: Path) -> None:
    with pytest.raises(ValueError, match="trust_remote_code"):
        load_model(own_code, torch.bfloat16, torch.device("cpu"))
    model = load_model(own_code, torch.bfloat16, torch.device("cpu"), trust_remote_code=True)
    assert type(model).__name__ == "OwnForCausalLM"
    assert load_tokenizer(own_code, trust_remote_code=True).eos_token == END


def test_a_model_is_known_by_its_own_code_only_where_that_is_trusted(own_code: Path) -> None:
    check_config(own_code, trust_remote_code=True)
    with pytest.raises(ValueError, match="trust_remote_code"):
        check_config(own_code)


def test_the_trainer_trusts_it_too_and_hands_it_on(own_code: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trust_remote_code"):
        Trainer.load(own_code, TrainerConfig(device="cpu"))
    config = TrainerConfig(device="cpu", trust_remote_code=True)
    trainer = Trainer.load(own_code, config)
    trainer.imitate([([2, 3, 4], [5, 6, 1])])
    trainer.save_checkpoint(tmp_path / "next")
    assert {*CODE} <= {file.name for file in (tmp_path / "next").iterdir()}
    assert Trainer.load(tmp_path / "next", config).step == 0
