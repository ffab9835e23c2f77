"""An exam outside of any night: who may sit it, what is told of it, and real exams of tiny students."""

import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from conf.load import STARTER, load_night
from conf.schema import EngineConfig, StudentConfig
from conf.storage.home import Home, InputError
from flows.evaluation import exam as flow
from flows.evaluation.models import engine_for, find_sitter
from flows.evaluation.run import slowest
from models.checkpoint import digest_folder, keep, write_lineage
from models.rollout import Rollout
from tasks.stage import commit
from tests.chaos.tiny_engine import Sampler
from tests.models.tiny import Architecture, write_tiny
from tests.tasks.tiny_student import write_student

SETTINGS = ["exam={target: {benchmark: arithmetic, levels: ['1'], problems: 3, samples: 2}}"]
SHORT = ["engine.max_model_len=1000", "exam.max_completion_tokens=4"]


class TinyEngine:
    """In vLLM's process: a tiny student's own answers, by plain PyTorch, in this process."""

    began: ClassVar[list[str]] = []

    def __init__(self, *_: Any, **__: Any) -> None:
        self.on_loss = print

    def call(
        self, function: Any, checkpoint: Path, config: EngineConfig, prompts: Any, size: int, **options: Any
    ) -> list[list[Rollout]]:
        self.began.append(checkpoint.name)
        options.pop("trust_remote_code")
        return Sampler(checkpoint, config).sample(prompts, size, **options)

    def close(self) -> None: ...


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(flow, "Worker", TinyEngine)
    monkeypatch.setattr(TinyEngine, "began", [])
    monkeypatch.setenv("NIGHTSCHOOL_HOME", str(tmp_path / "school"))
    return Home.here()


def student(folder: Path, architecture: Architecture = "llama") -> Path:
    """With room for an exercise of arithmetic."""
    write_tiny(folder, architecture)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 1000}))
    return folder


def test_it_trusts_the_model_that_the_configuration_names_and_no_other(tmp_path: Path) -> None:
    home = Home(tmp_path / "school")
    mine, others, deeper = tmp_path / "mine", tmp_path / "others", home.checkpoints / "0a1b" / "deeper"
    for folder in (mine, others, deeper):
        write_student(folder)
    write_student(home.checkpoints / "0a1c")
    trusted = StudentConfig(source=str(mine), trust_remote_code=True)

    def trusts(settings: StudentConfig, folder: Path) -> bool:
        return find_sitter(str(folder), "CHECKPOINT", settings, home).student.trust_remote_code

    assert trusts(trusted, mine)
    assert trusts(trusted, home.checkpoints / "0a1c")
    assert not trusts(trusted, others)
    assert not trusts(trusted, deeper)
    assert not trusts(StudentConfig(source=str(mine)), mine)


def test_a_checkpoint_is_named_by_its_digest_and_any_other_folder_is_linked_to_its_own(tmp_path: Path) -> None:
    home = Home(tmp_path / "school")
    draft = write_student(home.checkpoints / "new")
    write_lineage(draft, None)
    kept = keep(draft, home.checkpoints)
    sitter = find_sitter(kept.name, "CHECKPOINT", StudentConfig(), home)
    assert sitter.under_its_digest(tmp_path) == sitter.folder == kept
    other = find_sitter(str(write_student(tmp_path / "mine")), "CHECKPOINT", StudentConfig(), home)
    link = other.under_its_digest(tmp_path)
    assert (link.name, link.resolve()) == (digest_folder(other.folder), other.folder)
    assert other.under_its_digest(tmp_path) == link


def test_a_digest_for_a_name_is_not_taken_on_trust(tmp_path: Path) -> None:
    """The answers of a damaged checkpoint would be kept as those of the whole one."""
    home = Home(tmp_path / "school")
    draft = write_student(home.checkpoints / "new")
    write_lineage(draft, None)
    kept = keep(draft, home.checkpoints)
    copy = tmp_path / kept.name
    shutil.copytree(kept, copy)
    for folder in (kept, copy):
        (folder / "model.safetensors").write_text("torn")
    with pytest.raises(InputError) as error:
        find_sitter(kept.name, "CHECKPOINT", StudentConfig(), home)
    assert str(error.value).startswith(f"CHECKPOINT: {kept} was changed or damaged; ")
    link = find_sitter(str(copy), "CHECKPOINT", StudentConfig(), home).under_its_digest(tmp_path)
    assert link.name == digest_folder(copy) != copy.name


@pytest.mark.parametrize("source", ["nobody/at-all", "0123456789abcdef0123"])
def test_a_hub_id_without_a_network_is_one_clear_line(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as error:
        find_sitter(source, "--against", StudentConfig(), Home(tmp_path / "school"))
    assert str(error.value).startswith(f"--against: {source} cannot be loaded from the hub (")
    assert str(error.value).endswith("check the id and the network, or name a folder")
    assert "\n" not in str(error.value)


def test_no_more_context_than_the_model_has(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny")
    assert engine_for(EngineConfig(max_model_len=4096), folder).max_model_len == 128
    assert engine_for(EngineConfig(max_model_len=64), folder).max_model_len == 64
    assert engine_for(EngineConfig(), write_student(tmp_path / "untold")) == EngineConfig()


def test_the_slowest_exam_is_what_it_took_to_sit_it(tmp_path: Path) -> None:
    sat = {}
    for who, figures in (("champion", {"seconds_sat": 61.0}), ("distilled", {"seconds_sat": 40.0})):
        (tmp_path / who).mkdir()
        sat[who] = commit(tmp_path / who, "evaluate", {}, 0.2, figures)
    assert slowest(sat) == 61.0


@pytest.mark.usefixtures("prefect_server")
def test_two_students_are_compared_and_every_answer_is_exported(home: Home, tmp_path: Path) -> None:
    mine, other = student(tmp_path / "mine"), student(tmp_path / "other" / "mine", "qwen3")  # of the same name
    config = load_night(STARTER, SETTINGS + SHORT)
    found = flow.exam(str(mine), config, str(other), tmp_path / "rows.jsonl")
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert list(found) == ["arithmetic-1"]
    own = found["arithmetic-1"]
    assert (own["n"], own["against"]["n"], own["comparison"]["n"]) == (3, 3, 3)
    assert own["comparison"]["before_digest"] == digest_folder(other)
    assert own["comparison"]["after_digest"] == digest_folder(mine)
    assert TinyEngine.began == [digest_folder(mine)] * 2 + [digest_folder(other)] * 2  # greedy, then sampled
    json.dumps(found)
    rows = pd.read_json(tmp_path / "rows.jsonl", lines=True)
    assert rows.groupby("checkpoint", sort=False).size().to_dict() == {str(mine): 9, str(other): 9}
    assert rows.groupby("sampled").size().to_dict() == {False: 6, True: 12}
    texts = rows[~rows.sampled].groupby("checkpoint")["text"].agg(list)
    assert texts[str(mine)] != texts[str(other)]
    again = flow.exam(str(mine), config, str(other), tmp_path / "rows.csv")
    assert again == found
    assert len(TinyEngine.began) == 4  # nobody sits the same exam twice
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 18
    lines = flow.told(found)
    assert [line.split()[0] for line in lines] == ["arithmetic-1", "against", "difference"]
    assert re.search(r"n = 3  answers found 0\.0%, cut off \d+\.\d%, \d tokens, pass@1 0\.000, pass@2 0\.000", lines[0])


@pytest.mark.usefixtures("prefect_server")
def test_a_deployed_exam_of_an_empty_part_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command looks itself; a worker's run has nobody before it."""
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "of a worker")  # how Prefect has it said in tests
    config = load_night(STARTER, [*SETTINGS, "exam.target.after=100000", *SHORT])
    with pytest.raises(InputError, match="exam: arithmetic-1 has no problems"):
        flow.exam(str(student(tmp_path / "mine")), config)
    assert not home.root.exists()
    assert TinyEngine.began == []


@pytest.mark.usefixtures("prefect_server")
def test_a_deployed_exam_whose_rows_have_no_place_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "of a worker")
    (tmp_path / "rows.csv").mkdir()
    with pytest.raises(InputError, match="rows: .*rows.csv: there is a folder of that name"):
        flow.exam(str(student(tmp_path / "mine")), load_night(STARTER, SETTINGS + SHORT), None, tmp_path / "rows.csv")
    assert TinyEngine.began == []


@pytest.mark.usefixtures("prefect_server")
def test_the_same_exam_twice_gives_the_same_rows(home: Home, tmp_path: Path) -> None:
    """Sat anew, not looked up: in a home of its own."""
    folder, config = student(tmp_path / "mine"), load_night(STARTER, SETTINGS + SHORT)
    flow.exam(str(folder), config, None, tmp_path / "first.parquet")
    for kept in home.exams.iterdir():
        kept.rename(tmp_path / kept.name)
    flow.exam(str(folder), config, None, tmp_path / "second.parquet")
    assert len(TinyEngine.began) == 4
    first, second = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("first", "second"))
    assert first.equals(second)


def test_a_model_that_is_the_candidate_itself_differs_by_nothing() -> None:
    own = {"accuracy": 0.5, "low": 0.4, "high": 0.6, "n": 9, "format_rate": None, "truncation_rate": None}
    pair = {"difference": 0.0, "low": 0.0, "high": 0.0, "gained": 0, "lost": 0, "p_value": 1.0}
    lines = flow.told({"gsm8k": {**own, "mean_tokens": 3.0, "pass_at": {}, "against": own, "comparison": pair}})
    assert lines == [
        "gsm8k                    0.500  [0.400, 0.600]  n = 9  3 tokens",
        "  against                0.500  [0.400, 0.600]  n = 9",
        "  difference             0.000 [0.000, 0.000]  0 gained, 0 lost, p = 1.0000",
    ]
