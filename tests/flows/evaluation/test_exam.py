"""Evaluations outside of any night: which models, what is printed, and real exams of tiny students."""

import json
import re
import shutil
import stat
from pathlib import Path

import pandas as pd
import pytest

from conf.load import STARTER, load_night
from conf.schema import EngineConfig, StudentConfig
from conf.storage.home import Home, InputError
from flows.evaluation import exam as flow
from flows.evaluation.resolve_model import engine_for, resolve_model
from models.hf.checkpoint import digest_folder, keep, write_lineage
from rewards.arithmetic import Arithmetic
from tests.flows.rounds import TinyEngine
from tests.models.support.tiny import Architecture, write_tiny
from tests.tasks.doubles.student import write_student

SETTINGS = ["exam={target: {benchmark: arithmetic, levels: ['1'], problems: 3, samples: 2}}"]
SHORT = ["engine.max_model_len=1000", "exam.max_completion_tokens=4"]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> TinyEngine:
    engine = TinyEngine()
    monkeypatch.setattr("flows.evaluation.resolve_model.Worker", lambda *_: engine)
    return engine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "school"))
    return Home.here()


def student(folder: Path, architecture: Architecture = "llama") -> Path:
    """With room for an exercise of arithmetic."""
    write_tiny(folder, architecture)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1000}))
    return folder


def test_it_trusts_the_model_that_the_configuration_names_and_no_other(tmp_path: Path, home: Home) -> None:
    mine, others, deeper = tmp_path / "mine", tmp_path / "others", home.checkpoints / "0a1b" / "deeper"
    for folder in (mine, others, deeper):
        write_student(folder)
    write_student(home.checkpoints / "0a1c")
    trusted = StudentConfig(source=str(mine), trust_remote_code=True)

    def trusts(settings: StudentConfig, folder: Path) -> bool:
        return resolve_model(str(folder), "CHECKPOINT", settings, home).student.trust_remote_code

    assert trusts(trusted, mine)
    assert trusts(trusted, home.checkpoints / "0a1c")
    assert not trusts(trusted, others)
    assert not trusts(trusted, deeper)
    assert not trusts(StudentConfig(source=str(mine)), mine)


@pytest.fixture
def checkpoint(home: Home) -> Path:
    draft = write_student(home.checkpoints / "new")
    write_lineage(draft, None)
    return keep(draft, home.checkpoints)


def test_a_checkpoint_is_named_by_its_digest_and_any_other_folder_is_linked_to_its_own(
    tmp_path: Path, home: Home, checkpoint: Path
) -> None:
    model = resolve_model(checkpoint.name, "CHECKPOINT", StudentConfig(), home)
    assert model.named_by_digest(tmp_path) == model.folder == checkpoint
    other = resolve_model(str(write_student(tmp_path / "mine")), "CHECKPOINT", StudentConfig(), home)
    link = other.named_by_digest(tmp_path)
    assert (link.name, link.resolve()) == (digest_folder(other.folder), other.folder)
    assert other.named_by_digest(tmp_path) == link


def test_the_beginning_of_a_digest_is_enough_where_it_is_unique(home: Home, checkpoint: Path) -> None:
    assert resolve_model(checkpoint.name[:6], "CHECKPOINT", StudentConfig(), home).folder == checkpoint
    (home.checkpoints / f"{checkpoint.name[:6]}00000000000000").mkdir()
    with pytest.raises(InputError, match=f"2 checkpoints start with {checkpoint.name[:6]}"):
        resolve_model(checkpoint.name[:6], "CHECKPOINT", StudentConfig(), home)
    for unknown in ("d5e6d5e6", "0123456789abcdef0123"):
        with pytest.raises(InputError, match=unknown):
            resolve_model(unknown, "CHECKPOINT", StudentConfig(), home)


def test_a_damaged_checkpoint_is_refused_and_a_damaged_copy_gets_its_own_digest(
    tmp_path: Path, home: Home, checkpoint: Path
) -> None:
    """Its results would be cached as those of the whole one."""
    copy = tmp_path / checkpoint.name
    shutil.copytree(checkpoint, copy)
    for folder in (checkpoint, copy):
        (folder / "model.safetensors").write_text("torn")
    with pytest.raises(InputError, match="CHECKPOINT: .*damaged"):
        resolve_model(checkpoint.name, "CHECKPOINT", StudentConfig(), home)
    link = resolve_model(str(copy), "CHECKPOINT", StudentConfig(), home).named_by_digest(tmp_path)
    assert link.name == digest_folder(copy) != copy.name


def test_no_more_context_than_the_model_has(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny")
    assert engine_for(EngineConfig(max_model_len=4096), folder).max_model_len == 128
    assert engine_for(EngineConfig(max_model_len=64), folder).max_model_len == 64
    assert engine_for(EngineConfig(), write_student(tmp_path / "untold")) == EngineConfig()


@pytest.mark.usefixtures("prefect_server")
def test_two_students_are_compared_and_every_answer_is_exported(home: Home, engine: TinyEngine, tmp_path: Path) -> None:
    mine, other = student(tmp_path / "mine"), student(tmp_path / "other" / "mine", "qwen3")  # of the same name
    config = load_night(STARTER, SETTINGS + SHORT)
    outcome = flow.exam(str(mine), config, str(other), tmp_path / "rows.jsonl")
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert list(outcome) == ["arithmetic-1"]
    figures = outcome["arithmetic-1"]
    assert (figures["n"], figures["against"]["n"], figures["comparison"]["n"]) == (3, 3, 3)
    assert figures["comparison"]["before_digest"] == digest_folder(other)
    assert figures["comparison"]["after_digest"] == digest_folder(mine)
    assert engine.asked == [digest_folder(mine)] * 2 + [digest_folder(other)] * 2  # greedy, then sampled
    json.dumps(outcome)
    rows = pd.read_json(tmp_path / "rows.jsonl", lines=True)
    assert rows.groupby("checkpoint", sort=False).size().to_dict() == {str(mine): 9, str(other): 9}
    assert rows.groupby("sampled").size().to_dict() == {False: 6, True: 12}
    texts = rows[~rows.sampled].groupby("checkpoint")["text"].agg(list)
    assert texts[str(mine)] != texts[str(other)]
    assert flow.exam(str(mine), config, str(other), tmp_path / "rows.csv") == outcome
    assert len(engine.asked) == 4  # cached
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 18
    for cached in home.exams.iterdir():
        cached.rename(tmp_path / cached.name)
    flow.exam(str(mine), config, None, tmp_path / "again.parquet")  # evaluated anew, to the same rows
    assert len(engine.asked) == 6
    again = pd.read_parquet(tmp_path / "again.parquet")
    assert again.text.tolist() == rows[rows.checkpoint == str(mine)].text.tolist()
    lines = flow.lines_of(outcome)
    assert [line.split()[0] for line in lines] == ["arithmetic-1", "against", "difference"]
    assert re.search(r"n = 3  answers found 0\.0%, cut off \d+\.\d%, \d tokens, pass@1 0\.000, pass@2 0\.000", lines[0])


@pytest.mark.usefixtures("prefect_server")
def test_a_deployed_exam_is_checked_by_the_flow(
    home: Home, engine: TinyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command checks before it starts the flow; a worker's run has no command before it."""
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "of a worker")  # Prefect's way to set it in tests
    mine = str(student(tmp_path / "mine"))
    (tmp_path / "rows.csv").mkdir()
    with monkeypatch.context() as empty:
        empty.setattr(Arithmetic, "problems", lambda *_: [])
        with pytest.raises(InputError, match="no problems"):
            flow.exam(mine, load_night(STARTER, SETTINGS + SHORT))
    with pytest.raises(InputError, match="not writable"):
        flow.exam(mine, load_night(STARTER, SETTINGS + SHORT), None, tmp_path / "rows.csv")
    assert not home.root.exists()
    with pytest.raises(InputError, match="against: there is no"):
        flow.exam(mine, load_night(STARTER, SETTINGS + SHORT), "new:5M")
    assert engine.asked == []
