"""Importing a student: a model's folder is copied whole and named by its content; anything else is refused."""

import json
import re
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from conf.schema import StudentConfig
from conf.storage.home import InputError
from models.engine.sync_probe import PROBE_FILE
from models.hf.checkpoint import digest_folder, parent_of, verify
from models.hf.loading import PLAIN_TEMPLATE
from tasks.registry import import_model as module
from tasks.registry.import_model import check_source, check_student, enroll
from tests.models.support.tiny import write_tiny
from tests.refusal import refusal
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import run_stage


def enrolled(tmp_path: Path, source: Path, trusted: bool = False) -> Path:
    student = StudentConfig(source=str(source), trust_remote_code=trusted)
    done = run_stage(enroll, tmp_path / "enroll", student=student, checkpoints=tmp_path / "checkpoints")
    return tmp_path / "checkpoints" / (done.folder / "checkpoint.txt").read_text()


def test_a_folder_is_copied_and_named_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "draft").mkdir(parents=True)
    (tmp_path / "checkpoints" / "draft" / "junk.json").write_text("{}")  # of an import that was killed
    source = write_student(tmp_path / "mine")
    (source / "chat_template.jinja").write_text("{{ messages }}")
    (source / "nightschool.json").write_text('{"version": 1, "parent": "cafe42"}')
    (source / "notes.md").write_text("mine")
    checkpoint = enrolled(tmp_path, source)
    verify(checkpoint)
    assert checkpoint.name == digest_folder(checkpoint)
    assert parent_of(checkpoint) is None
    names = {file.name for file in checkpoint.iterdir()}
    assert {"config.json", "tokenizer.json", "model.safetensors", "chat_template.jinja", "nightschool.json"} <= names
    assert not {"notes.md", "junk.json"} & names
    assert (checkpoint / "model.safetensors").read_bytes() == b"weights"
    assert enrolled(tmp_path, source) == checkpoint
    assert [folder.name for folder in (tmp_path / "checkpoints").iterdir()] == [checkpoint.name]


def test_code_is_copied_only_where_it_is_trusted(tmp_path: Path) -> None:
    source = write_student(tmp_path / "mine")
    (source / "modeling_mine.py").write_text("import os")
    assert not (enrolled(tmp_path, source) / "modeling_mine.py").exists()
    assert (enrolled(tmp_path, source, trusted=True) / "modeling_mine.py").read_text() == "import os"


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        ("tokenizer.json", "no tokenizer.json (a tokenizer)"),
        ("config.json", "no config.json (a model's configuration)"),
        ("model.safetensors", "no *.safetensors (weights)"),
    ],
)
def test_a_folder_without_a_complete_model(tmp_path: Path, missing: str, what: str) -> None:
    source = write_student(tmp_path / "mine")
    (source / missing).unlink()
    line = f"student.source: {source}: {what}"
    assert refusal(check_student, source).startswith(line)
    assert refusal(check_source, StudentConfig(source=str(source)), tmp_path).startswith(line)
    with pytest.raises(InputError):
        enrolled(tmp_path, source)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(("file", "content"), [("config.json", '{"model_type": "nobodys"}'), ("tokenizer.json", "{}")])
def test_a_student_that_cannot_be_loaded(tmp_path: Path, file: str, content: str) -> None:
    source = write_student(tmp_path / "mine")
    (source / file).write_text(content)
    line = refusal(check_source, StudentConfig(source=str(source)), tmp_path)
    assert line.startswith(f"student.source: {source}: {file} cannot be loaded (")


@pytest.mark.parametrize("source", ["./mine", "/nowhere/mine", "~/mine", "a/b/c", "", "mine/"])
def test_a_folder_that_is_not_there_is_no_hub_id(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no such folder|no config.json"):
        check_source(StudentConfig(source=source), tmp_path)


def test_a_hub_id_that_cannot_be_loaded_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fail(name: str, **options: object) -> str:
        asked.append((name, options["revision"], options["allow_patterns"]))
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr(module, "snapshot_download", fail)
    assert refusal(check_source, StudentConfig(source="Qwen/Qwen3-0.6B", revision="main"), Path()) == (
        "student.source: Qwen/Qwen3-0.6B cannot be loaded from the hub (ConnectionError: no route to the hub); "
        "check the id and the network, or name a folder"
    )
    assert asked == [("Qwen/Qwen3-0.6B", "main", ["config.json", "tokenizer.json"])]


def test_a_base_model_without_a_template_gets_the_plain_one(tmp_path: Path) -> None:
    """Otherwise a server would not know how to render a conversation."""
    source = write_student(tmp_path / "mine")
    checkpoint = enrolled(tmp_path, source)
    assert (checkpoint / "chat_template.jinja").read_text() == PLAIN_TEMPLATE
    config = source / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": "{{ messages }}"}))
    assert not (enrolled(tmp_path, source) / "chat_template.jinja").exists()


def test_an_adapter_is_merged_into_its_base(tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base")
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), LoraConfig(r=4, target_modules="all-linear"))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(tmp_path / "adapter")
    check_source(StudentConfig(source=str(tmp_path / "adapter")), tmp_path)
    checkpoint = enrolled(tmp_path, tmp_path / "adapter")
    names = {file.name for file in checkpoint.iterdir()}
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= names
    assert not {PROBE_FILE, "adapter_config.json"} & names
    ids = torch.arange(20)[None]
    with torch.no_grad():
        expected = model(ids).logits.float()
        torch.testing.assert_close(
            AutoModelForCausalLM.from_pretrained(checkpoint)(ids).logits.float(), expected, atol=0.1, rtol=0.0
        )
        plain = AutoModelForCausalLM.from_pretrained(base)(ids).logits.float()
    assert float((plain - expected).abs().max()) > 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"base_model_name_or_path": "nowhere/at all"}', "the adapter's base: nowhere/at all: there is no such"),
        ("{}", "no base_model_name_or_path in adapter_config.json"),
    ],
)
def test_an_adapter_without_its_base(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "adapter_config.json").write_text(content)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(message)):
        check_source(StudentConfig(source=str(tmp_path)), tmp_path)


def test_a_student_from_nothing_that_takes_long_is_made_first(tmp_path: Path) -> None:
    check_source(StudentConfig(source="new:1M"), tmp_path)
    with pytest.raises(InputError, match="run: nightschool pretrain 49M"):
        check_source(StudentConfig(source="new:49M"), tmp_path)
