"""An owner moves the aliases: never to another model, never to a damaged one, and never while a night does."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from mlflow.exceptions import MlflowException

from conf.storage.home import Home, InputError
from conf.storage.locks import alias_lock
from flows.commands.home.promote import promote_version, roll_back
from models.hf.checkpoint import keep, write_lineage
from tasks.registry.mlflow_registry import Version
from tests.refusal import refusal
from tests.tasks.doubles.registry import School, interrupted_at_each_call

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 97, "hidden_size": 32}


def model(home: Home, weights: str, tokenizer: str = "letters", **shape: object) -> Path:
    draft = home.checkpoints / "draft"
    draft.mkdir(parents=True)
    (draft / "model.safetensors").write_text(weights)
    (draft / "config.json").write_text(json.dumps(LLAMA | shape))
    (draft / "tokenizer.json").write_text(tokenizer)
    write_lineage(draft, None)
    return keep(draft, home.checkpoints)


@pytest.fixture
def home(home_with_mlflow: Callable[[str], Home]) -> Home:
    return home_with_mlflow("school")


@pytest.fixture
def school(home: Home) -> School:
    """Version 1 serves; 2 is its relative, 3 has another tokenizer, 4 and 5 are other models."""
    school = School(home)
    school.checkpoints = [
        model(home, "one"),
        model(home, "two", transformers_version="9.9"),
        model(home, "three", tokenizer="syllables"),
        model(home, "four", model_type="qwen3"),
        model(home, "five", hidden_size=64),
    ]
    for number in range(5):
        school.register(number)
    promote_version(home, school.registry, "1")
    return school


def test_a_relative_serves_and_the_way_back_is_known(home: Home, school: School) -> None:
    assert promote_version(home, school.registry, "2")[1]
    assert school.aliases() == ("2", "1")
    assert not promote_version(home, school.registry, "2")[1]  # it serves already: a rollback would undo more
    serving, finished = roll_back(home, school.registry)
    assert (serving.version, finished) == ("1", False)
    assert school.aliases() == ("1", "2")


def test_a_rollback_that_was_killed_is_only_finished_when_it_is_repeated(home: Home, school: School) -> None:
    promote_version(home, school.registry, "2")
    done: list[tuple[Version, bool]] = []
    killed = interrupted_at_each_call(school.registry, lambda: done.append(roll_back(home, school.registry)))
    assert list(killed) == ["set_model_version_tag"] * 2 + ["set_registered_model_alias"]
    ((serving, finished),) = done
    assert (serving.version, finished) == ("1", True)
    assert school.aliases() == ("1", "2")


def test_a_registry_that_fails_is_one_line(home: Home, school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    error = MlflowException("database is locked\nSELECT …")
    monkeypatch.setattr(school.registry, "finish_alias_move", Mock(side_effect=error))
    with pytest.raises(InputError, match=r"^rollback: .*database is locked\)"):
        roll_back(home, school.registry)


def test_after_nights_that_promote_nothing_the_way_back_is_that_nights_student(home: Home) -> None:
    """Two students of one name: the other one, of the earlier night, is no predecessor."""
    school = School(home)
    for role, weights, architecture in (
        ("champion", "one", "llama"),
        ("candidate", "two", "llama"),
        ("champion", "three", "qwen3"),
        ("candidate", "four", "qwen3"),
    ):
        school.checkpoints[0] = model(home, weights, model_type=architecture)
        school.register(0, role)
    assert promote_version(home, school.registry, "4")[1]
    assert school.aliases() == ("4", "3")


@pytest.mark.parametrize(
    ("version", "difference"),
    [
        ("3", "another tokenizer (tokenizer.json differs)"),
        ("4", "another architecture (model_type: qwen3, not llama)"),
        ("5", "another architecture (hidden_size: 64, not 32)"),
    ],
)
def test_another_model_is_refused_in_one_line(home: Home, school: School, version: str, difference: str) -> None:
    line = refusal(promote_version, home, school.registry, version)
    cannot = f"promote: version {version} cannot replace the champion, version 1: {difference}"
    assert line.startswith(f"{cannot}; give another student a name")
    assert school.aliases() == ("1", None)


def test_the_owner_waits_for_a_night_that_moves_the_aliases(home: Home, school: School) -> None:
    """Then the rollback sees what was done meanwhile."""
    done = threading.Event()

    def go_back() -> None:
        roll_back(home, school.registry)
        done.set()

    promote_version(home, school.registry, "2")
    with alias_lock(home):
        waiting = threading.Thread(target=go_back)
        waiting.start()
        assert not done.wait(1.0)
        school.registry.promote("1")
        assert school.aliases() == ("1", "2")
    waiting.join()
    assert school.aliases() == ("2", "1")


def test_no_home_no_lock(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no home here"), alias_lock(Home(tmp_path / "nowhere")):
        pass
    assert not (tmp_path / "nowhere").exists()
