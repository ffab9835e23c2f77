"""A stage is committed by its manifest: what counts as done, what runs again, and what Prefect shows of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import TaskRun
from prefect.runtime import flow_run

from conf.schema import EngineConfig, StudentConfig
from conf.sections.lessons import DistillConfig, EndpointConfig, TeacherConfig
from conf.storage.durable import DiskFullError
from tasks.rollouts.verified import Player
from tasks.stage import MANIFEST, Artifact, Stage, committed, stage, uncommit
from tasks.workers.worker import WorkerDiedError
from tests.waiting import awaited

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
    """A stage that writes its text and, where `numbered`, the number of its run; `helper` is a resource."""

    def __init__(self, retries: int = 0, failures: tuple[Exception, ...] = (), numbered: bool = True) -> None:
        self.runs: list[str] = []
        failing = list(failures)

        def notes(folder: Path, *, text: str, before: Any = None, helper: object = None) -> None:
            self.runs.append(text)
            assert not list(folder.iterdir())
            (folder / "out.txt").write_text(text)
            (folder / "inner").mkdir()
            (folder / "inner" / "run.json").write_text(json.dumps(len(self.runs) * numbered))
            if failing:
                raise failing.pop(0)

        self.stage: Stage = stage(retries=retries, resources=("helper",))(notes)

    def __call__(self, night: Path, path: str = "notes", **arguments: Any) -> Artifact:
        return self.stage(night, path, **arguments)


def test_a_committed_stage_is_never_run_again(tmp_path: Path) -> None:
    notes = Notes()
    first, second = notes(tmp_path, text="one"), notes(tmp_path, text="one")
    assert notes.runs == ["one"]
    assert first == second
    assert second.folder == tmp_path / "notes"
    assert second.read_json("inner/run.json") == 1
    assert 0 <= second.seconds < 60


def test_the_manifest_names_inputs_and_outputs(tmp_path: Path) -> None:
    Notes()(tmp_path, text="one", helper=object())
    manifest = json.loads((tmp_path / "notes" / MANIFEST).read_text())
    assert manifest["stage"] == "notes"
    assert manifest["inputs"].keys() == {"text"}
    # sha256sum of the three letters "one"
    assert manifest["outputs"]["out.txt"] == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    assert manifest["outputs"].keys() == {"out.txt", "inner/run.json"}
    assert {"torch", "transformers", "nightschool"} <= manifest["versions"].keys()
    assert not list(tmp_path.rglob("*.draft"))


def test_figures_do_not_make_it_another_artifact(tmp_path: Path) -> None:
    @stage()
    def timed(folder: Path, *, text: str) -> dict[str, float]:
        (folder / "out.txt").write_text(text)
        return {"generate": len(folder.parent.name)}

    one, other = (timed(tmp_path / night, "timed", text="one") for night in ("a", "bb"))
    assert [one.figure("generate"), other.figure("generate"), other.figure("sync")] == [1, 2, None]
    assert one.digest == other.digest


def unmanifested(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def flipped(folder: Path) -> None:
    (folder / "out.txt").write_bytes(bytes([ord("o") ^ 1]) + b"ne")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no manifest": unmanifested,
    "half a manifest": lambda folder: (folder / MANIFEST).write_text((folder / MANIFEST).read_text()[:40]),
    "a foreign manifest": lambda folder: (folder / MANIFEST).write_text('{"version": 99}'),
    "a flipped bit": flipped,
    "a lost file": lambda folder: (folder / "inner" / "run.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_stage_is_run_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    notes = Notes()
    notes(tmp_path, text="one")
    damage(tmp_path / "notes")
    assert notes.stage.committed(tmp_path, "notes", text="one") is None
    again = notes(tmp_path, text="one")
    assert notes.runs == ["one", "one"]
    assert again.read_json("inner/run.json") == 2
    assert notes.stage.committed(tmp_path, "notes", text="one") == again


def teacher(url: str, model: str) -> DistillConfig:
    return DistillConfig(teacher=TeacherConfig(endpoint=EndpointConfig(base_url=url, model=model)))


def player(engine: Any, temperature: float) -> Player:
    return Player(Path("/here/cafe42"), StudentConfig(), EngineConfig(), engine, 8, temperature)


@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        ({"text": "one", "helper": 1}, {"text": "one", "helper": object()}, {"text": "two", "helper": 1}),
        *[
            ({"text": "one", "before": [first]}, {"text": "one", "before": (same,)}, {"text": "one", "before": [other]})
            for first, same, other in [
                (Path("/here/cafe42"), Path("/there/cafe42"), Path("/here/c0ffee")),
                (DistillConfig(steps=3), DistillConfig(steps=3), DistillConfig(steps=4)),
                (teacher("http://a/v1", "m"), teacher("http://b/v1", "m"), teacher("http://a/v1", "n")),
                (player("one", 0.0), player("other", 0.0), player("one", 1.0)),
            ]
        ],
    ],
    ids=["a resource", "a checkpoint's folder", "a section's values", "a service's address", "a player's engine"],
)
def test_a_changed_input_runs_again(tmp_path: Path, first: Any, same: Any, other: Any) -> None:
    """What is no input: a resource, where a checkpoint lies, where a service listens, which process is the engine."""
    notes = Notes()
    for arguments, runs in ((first, 1), (same, 1), (other, 2), (first, 3)):
        notes(tmp_path, **arguments)
        assert len(notes.runs) == runs


def test_another_artifact_runs_again(tmp_path: Path) -> None:
    """One that was made again to the same bytes does not."""
    source, notes = Notes(numbered=False), Notes()
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    (tmp_path / "source" / "out.txt").write_text("damaged")
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="a"))
    assert (source.runs, notes.runs) == (["a", "a"], ["one"])
    notes(tmp_path, text="one", before=source(tmp_path, "source", text="b"))
    assert notes.runs == ["one", "one"]


def test_an_input_without_a_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="input"):
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


def test_only_a_lost_child_process_is_tried_again(tmp_path: Path) -> None:
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


def test_prefect_shows_the_second_time_as_cached_with_the_same_edges(tmp_path: Path) -> None:
    """A resumed night's graph is whole: what runs then depends on what had been committed."""
    notes, night = Notes(), partial(two_stages, tmp_path)
    sample, score = "round 3 · sample", "round 3 · score"
    assert shown(night(notes)) == {sample: ("Completed", []), score: ("Completed", [sample])}
    assert shown(night(notes)) == {sample: ("Cached", []), score: ("Cached", [sample])}
    assert notes.runs == ["one", "two"]
    flipped(tmp_path / "round-03" / "score")
    assert shown(night(notes)) == {sample: ("Cached", []), score: ("Completed", [sample])}
    assert notes.runs == ["one", "two", "two"]


@flow
def two_stages(folder: Path, notes: Any) -> str:
    """Returns the flow run's id."""
    sampled = notes(folder, "round-03/sample", text="one")
    notes(folder, "round-03/score", text="two", wait_for=[sampled])
    return str(flow_run.get_id())


def shown(flow_run_id: str) -> dict[str, tuple[str, list[str]]]:
    """Return the state of each of a flow run's two tasks, and what it waited for; the server knows them later."""
    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))

    def finished() -> list[TaskRun] | None:
        with get_client(sync_client=True) as client:
            runs = client.read_task_runs(flow_run_filter=chosen)
        return runs if len(runs) == 2 and all(run.state and run.state.is_final() for run in runs) else None

    runs = awaited(finished, "end of the tasks", 30)
    names = {run.id: run.name for run in runs}
    waited = {run.id: [names[one.id] for one in run.task_inputs.get("wait_for", [])] for run in runs}
    return {run.name: (run.state_name or "", waited[run.id]) for run in runs}


def test_a_full_disk_leaves_no_half_stage_and_the_next_try_goes_on(tmp_path: Path) -> None:
    full = [True]

    def writing(folder: Path) -> None:
        (folder / "good.txt").write_text("good")
        if full:
            full.pop()
            (folder / "out.txt").symlink_to("/dev/full")
        (folder / "out.txt").write_text("one")

    made = stage(retries=2)(writing)
    with pytest.raises(DiskFullError, match="disk is full"):
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
