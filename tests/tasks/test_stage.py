"""A stage is committed by its manifest: what counts as done, what is run again, and what Prefect shows of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.runtime import flow_run
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH, temporary_settings

from conf.sections.lessons import DistillConfig, TeacherConfig
from conf.storage.durable import DiskFullError
from tasks.stage import MANIFEST, Artifact, Stage, commit, committed, run_name, stage, uncommit
from tasks.workers import WorkerDiedError

pytestmark = pytest.mark.usefixtures("prefect_server")

KILLED_BEFORE_THE_MANIFEST = """
import os, signal, sys
from pathlib import Path
from tasks import stage

folder = Path(sys.argv[1])
folder.mkdir(parents=True)
(folder / "out.txt").write_text("one")
stage.write_atomically = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
stage.commit(folder, "write", {}, 0.0)
"""


class Notes:
    """A stage that writes its text and its run's number; `helper` is a means and no input."""

    def __init__(self, retries: int = 0, failures: tuple[Exception, ...] = ()) -> None:
        self.runs: list[str] = []
        failing = list(failures)

        def notes(folder: Path, *, text: str, before: Any = None, helper: object = None) -> None:
            """Writes down what it was told."""
            self.runs.append(text)
            assert not list(folder.iterdir())
            (folder / "out.txt").write_text(text)
            (folder / "inner").mkdir()
            (folder / "inner" / "run.json").write_text(json.dumps(len(self.runs)))
            if failing:
                raise failing.pop(0)

        self.stage: Stage = stage(retries=retries, resources=("helper",))(notes)

    def __call__(self, night: Path, place: str = "notes", **arguments: Any) -> Artifact:
        return self.stage(night, place, **arguments)


def test_a_committed_stage_is_never_run_again(tmp_path: Path) -> None:
    notes = Notes()
    first, second = notes(tmp_path, text="one"), notes(tmp_path, text="one")
    assert notes.runs == ["one"]
    assert first == second
    assert second.folder == tmp_path / "notes"
    assert second.read_json("inner/run.json") == 1
    assert 0 <= second.seconds < 60


def test_the_manifest_says_what_went_in_and_what_came_out(tmp_path: Path) -> None:
    Notes()(tmp_path, text="one", helper=object())
    manifest = json.loads((tmp_path / "notes" / MANIFEST).read_text())
    assert manifest["stage"] == "notes"
    assert manifest["inputs"].keys() == {"text"}
    # sha256sum of the three letters "one"
    assert manifest["outputs"]["out.txt"] == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert manifest["outputs"].keys() == {"out.txt", "inner/run.json"}
    assert {"torch", "transformers", "nightschool"} <= manifest["versions"].keys()
    assert not list(tmp_path.rglob("*.draft"))


def test_the_figures_of_a_run_do_not_make_it_another_artifact(tmp_path: Path) -> None:
    found = []
    for seconds in (1.5, 2.5):

        def timed(folder: Path, *, text: str, took: float = seconds) -> dict[str, float]:
            (folder / "out.txt").write_text(text)
            return {"generate": took}

        found.append(stage()(timed)(tmp_path / str(seconds), "timed", text="one"))
    assert [artifact.figure("generate") for artifact in found] == [1.5, 2.5]
    assert found[0].digest == found[1].digest
    assert found[0].figure("sync") is None
    assert Notes()(tmp_path, text="one").figure("sync") is None


def unmanifested(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def half_a_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:40])


def foreign_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"version": 99}')


def flipped(folder: Path) -> None:
    (folder / "out.txt").write_bytes(bytes([ord("o") ^ 1]) + b"ne")


def lost(folder: Path) -> None:
    (folder / "inner" / "run.json").unlink()


@pytest.mark.parametrize("damage", [unmanifested, half_a_manifest, foreign_manifest, flipped, lost])
def test_a_damaged_stage_is_run_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    notes = Notes()
    notes(tmp_path, text="one")
    damage(tmp_path / "notes")
    assert notes.stage.committed(tmp_path, "notes", text="one") is None
    again = notes(tmp_path, text="one")
    assert notes.runs == ["one", "one"]
    assert again.read_json("inner/run.json") == 2
    assert notes.stage.committed(tmp_path, "notes", text="one") == again


def test_a_changed_input_runs_again_and_a_changed_means_does_not(tmp_path: Path) -> None:
    notes = Notes()
    notes(tmp_path, text="one", helper=1)
    notes(tmp_path, text="one", helper=object())
    assert notes.runs == ["one"]
    notes(tmp_path, text="two", helper=1)
    assert notes.runs == ["one", "two"]
    notes(tmp_path, text="one")
    assert notes.runs == ["one", "two", "one"]


def test_what_an_artifact_holds_is_part_of_what_is_made_from_it(tmp_path: Path) -> None:
    source, notes = Notes(), Notes()
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    assert notes.runs == ["one"]
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="b"))
    assert notes.runs == ["one", "one"]


def test_a_checkpoint_counts_by_its_name_and_a_section_by_its_values(tmp_path: Path) -> None:
    notes = Notes()
    notes(tmp_path, text="one", before=[Path("/here/cafe42"), DistillConfig(steps=3), {"a": None}])
    notes(tmp_path, text="one", before=(Path("/there/cafe42"), DistillConfig(steps=3), {"a": None}))
    assert len(notes.runs) == 1
    notes(tmp_path, text="one", before=[Path("/here/cafe42"), DistillConfig(steps=4), {"a": None}])
    notes(tmp_path, text="one", before=[Path("/here/c0ffee"), DistillConfig(steps=4), {"a": None}])
    assert len(notes.runs) == 3


def test_where_a_service_listens_is_no_input(tmp_path: Path) -> None:
    here, there, other = (
        DistillConfig(teacher=TeacherConfig(base_url=url, model=model))
        for url, model in (("http://a/v1", "m"), ("http://b/v1", "m"), ("http://b/v1", "n"))
    )
    notes = Notes()
    notes(tmp_path, text="one", before=[here])
    notes(tmp_path, text="one", before=[there])
    assert len(notes.runs) == 1
    notes(tmp_path, text="one", before=[other])
    assert len(notes.runs) == 2


def test_an_input_without_a_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a stage's input may not be a object"):
        Notes()(tmp_path, text="one", before=object())
    assert not (tmp_path / "notes").exists()


def test_killed_between_the_outputs_and_the_manifest(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_BEFORE_THE_MANIFEST, str(tmp_path / "notes")]
    killed = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "notes" / "out.txt").read_text() == "one"
    assert committed(tmp_path / "notes") is None
    notes = Notes()
    notes(tmp_path, text="one")
    assert notes.runs == ["one"]


def test_only_a_lost_child_process_is_worth_another_try(tmp_path: Path) -> None:
    unlucky = Notes(retries=2, failures=(WorkerDiedError("killed"), WorkerDiedError("killed")))
    assert unlucky(tmp_path, text="one").read_json("inner/run.json") == 3
    mistaken = Notes(retries=2, failures=(ValueError("wrong"),))
    with pytest.raises(ValueError, match="wrong"):
        mistaken(tmp_path, "other", text="one")
    assert mistaken.runs == ["one"]
    assert committed(tmp_path / "other") is None
    doomed = Notes(retries=1, failures=tuple(WorkerDiedError("killed") for _ in range(3)))
    with pytest.raises(WorkerDiedError):
        doomed(tmp_path, "third", text="one")
    assert doomed.runs == ["one", "one"]


def test_the_folder_is_the_truth_where_prefect_remembers_something_else(tmp_path: Path) -> None:
    """A night killed after the commit and before Prefect wrote its record: the record is that of an earlier run."""
    notes = Notes()
    old = notes(tmp_path, text="one")
    unmanifested(tmp_path / "notes")
    with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: tmp_path / "elsewhere"}):
        new = commit_again(notes, tmp_path)
    assert new.digest != old.digest
    assert notes(tmp_path, text="one") == new


def commit_again(notes: Notes, night: Path) -> Artifact:
    folder = night / "notes"
    inputs = notes.stage._inputs({"text": "one"})
    (folder / "inner" / "run.json").write_text("2")
    return commit(folder, "notes", inputs, 0.0)


def test_a_record_that_prefect_wrote_by_half_costs_nothing(tmp_path: Path) -> None:
    """It lies in the home, and nobody forces it to the disk."""
    notes = Notes()
    with temporary_settings({PREFECT_LOCAL_STORAGE_PATH: tmp_path / "storage"}):
        first = notes(tmp_path, text="one")
        (record,) = (tmp_path / "storage").iterdir()
        os.truncate(record, record.stat().st_size // 2)
        assert notes(tmp_path, text="one") == first
    assert notes.runs == ["one"]


def test_prefect_shows_the_second_time_as_cached(tmp_path: Path) -> None:
    notes = Notes()

    @flow
    def night() -> str:
        notes(tmp_path, "round-03/sample", text="one")
        return str(flow_run.get_id())

    assert shown(night()) == {"round 3 · sample": "Completed"}
    assert shown(night()) == {"round 3 · sample": "Cached"}
    assert notes.runs == ["one"]
    flipped(tmp_path / "round-03" / "sample")
    assert shown(night()) == {"round 3 · sample": "Completed"}
    assert notes.runs == ["one", "one"]
    assert shown(night()) == {"round 3 · sample": "Cached"}


def shown(flow_run_id: str) -> dict[str, str]:
    """The task runs of a flow run and their states; Prefect's server learns of them a little later."""
    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))  # pyright: ignore
    limit = time.monotonic() + 30
    while True:
        with get_client(sync_client=True) as client:
            runs = client.read_task_runs(flow_run_filter=chosen)
        if (runs and all(run.state and run.state.is_final() for run in runs)) or time.monotonic() > limit:
            return {run.name: run.state.name or "" for run in runs if run.state}
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("round-03/sample", "round 3 · sample"),
        ("round-12/quiz", "round 12 · quiz"),
        ("round-03/refill-1/select_prompts", "round 3 · refill 1 · select prompts"),
        ("freeze_journal", "freeze journal"),
        ("evaluate/champion", "evaluate · champion"),
    ],
)
def test_a_run_is_named_as_people_read_it(place: str, name: str) -> None:
    assert run_name(place) == name


def test_a_stage_made_again_to_the_same_bytes_leaves_the_later_ones_standing(tmp_path: Path) -> None:
    source, notes = Texts(), Notes()
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    (tmp_path / "source" / "out.txt").write_text("damaged")
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    assert (source.runs, notes.runs) == (["a", "a"], ["one"])
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="b"))
    assert notes.runs == ["one", "one"]


class Texts(Notes):
    """A stage that writes its text and nothing else: run again, it comes to the same bytes."""

    def __init__(self) -> None:
        self.runs: list[str] = []

        def texts(folder: Path, *, text: str) -> None:
            self.runs.append(text)
            (folder / "out.txt").write_text(text)

        self.stage: Stage = stage()(texts)


def test_a_full_disk_leaves_no_half_stage_and_the_next_try_goes_on(tmp_path: Path) -> None:
    full = [True]

    def writing(folder: Path) -> None:
        (folder / "good.txt").write_text("good")
        if full:
            full.pop()
            (folder / "out.txt").symlink_to("/dev/full")
        (folder / "out.txt").write_text("one")

    made = stage(retries=2)(writing)
    with pytest.raises(DiskFullError, match="writing: the disk is full: more than"):
        made(tmp_path, "writing")
    assert not (tmp_path / "writing").exists()
    assert made(tmp_path, "writing").folder == tmp_path / "writing"


def test_a_stage_that_is_taken_back_halfway_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes()
    folder = notes(tmp_path, text="one").folder
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            uncommit(folder)
    assert (folder / "out.txt").exists()
    assert committed(folder) is None
    uncommit(folder)
    uncommit(folder)
    assert not folder.exists()


def killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
