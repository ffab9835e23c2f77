"""Committed stages: Prefect tasks whose outputs count only once their folder contains a manifest.

A stage writes files into its folder and flushes them to disk. Last, it renames `manifest.json` into place, with
digests of the stage's inputs and files. A folder without a manifest counts as absent, so the stage runs again. If the
manifest matches the stage's inputs and files, the stage does not run again, and Prefect shows it as *Cached*.
"""

import hashlib
import inspect
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from conf.storage.durable import make_folder, room_for, sync, sync_folder, write_atomically
from conf.storage.layout import MANIFEST, run_name
from models.hf.checkpoint import digest_file
from tasks.workers.worker import WorkerDiedError, working_on

Write = Callable[..., Mapping[str, float] | None]  # the function that a stage wraps


class Artifact(BaseModel, frozen=True):
    """A committed stage's outputs: their folder, and a digest of their content."""

    folder: Path
    digest: str

    def read_json(self, name: str) -> Any:
        """Return the content of the stage's JSON file `name`."""
        return json.loads((self.folder / name).read_text())

    @property
    def seconds(self) -> float:
        """How long the stage took, in seconds."""
        return self.read_json(MANIFEST)["seconds"]

    def figure(self, name: str) -> float | None:
        """Return the metric `name` that the stage's function returned, or None if it returned no such metric."""
        return self.read_json(MANIFEST).get("figures", {}).get(name)


class Stage:
    """A function wrapped as a committed stage, called as `stage(night_folder, path, **arguments) -> Artifact`.

    The function receives the folder to write into and the arguments. It may return a dict of metrics (e.g. seconds per
    phase). Its outputs must depend only on its inputs: artifacts, configuration sections, players (see `Player`) and
    plain values. Arguments named in `resources` (e.g. a worker) do not count as inputs.
    """

    def __init__(self, write: Write, retries: int, resources: tuple[str, ...]) -> None:
        from prefect import task  # takes 30 MB that a process without stages can do without

        self.write = write
        self.resources = resources
        self.parameters = inspect.signature(write).parameters
        self.name = write.__name__
        run: Any = self._run
        self._task: Any = task(
            run,
            name=self.name,
            description=inspect.getdoc(write),
            task_run_name="{label}",
            retries=retries,
            retry_condition_fn=worker_died,
            persist_result=False,  # the folder holds it
        )

    def __call__(self, night: Path, path: str, /, *, wait_for: Sequence[Any] = (), **arguments: Any) -> Artifact:
        """Run the stage, or return the artifact that it committed earlier from the same inputs.

        In Prefect's graph, the stage depends on each result in `wait_for`.
        """
        call = _Call(night / path, self._inputs(arguments), arguments)
        result = self._task(run_name(path), call, wait_for=wait_for)
        return call.known or result

    def committed(self, night: Path, path: str, /, **arguments: Any) -> Artifact | None:
        """Return the artifact committed from these inputs, or None if there is none or its files have changed."""
        return committed(night / path, self._inputs(arguments))

    def _inputs(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        return {name: digest_of(value) for name, value in arguments.items() if name not in self.resources}

    def _run(self, label: str, call: "_Call") -> Any:
        """Return the new artifact, or a state with the name `Cached` and the known artifact."""
        from prefect.states import Completed

        if call.known:
            return Completed(name="Cached", data=call.known)
        uncommit(call.folder)
        make_folder(call.folder)
        started = time.perf_counter()
        with room_for(call.folder), working_on(self.name):
            figures = self.write(call.folder, **call.arguments)
            return commit(call.folder, self.name, call.inputs, time.perf_counter() - started, figures)


class _Call:
    """One call of a stage, wrapped so that Prefect neither copies nor traverses its arguments.

    `known`: the artifact that an earlier call with the same inputs has committed, or None.
    """

    def __init__(self, folder: Path, inputs: dict[str, str], arguments: Mapping[str, Any]) -> None:
        self.folder, self.inputs, self.arguments = folder, inputs, arguments
        self.known = committed(folder, inputs)


def stage(*, retries: int = 0, resources: tuple[str, ...] = ()) -> Callable[[Write], Stage]:
    """Return a decorator that turns a function into a stage, which reruns up to `retries` times if a worker dies."""
    return lambda write: Stage(write, retries, resources)


def commit(
    folder: Path, name: str, inputs: dict[str, str], seconds: float, figures: Mapping[str, float] | None = None
) -> Artifact:
    """Flush a stage's files to disk, then move its manifest into place."""
    outputs = {str(file.relative_to(folder)): digest_file(file) for file in sorted(folder.rglob("*")) if file.is_file()}
    manifest = {
        "version": 1,
        "stage": name,
        "inputs": inputs,
        "outputs": outputs,
        "seconds": seconds,
        "figures": dict(figures or {}),
        "versions": _versions(),
    }
    sync_folder(folder)
    write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1))
    return _artifact(folder, manifest)


def committed(folder: Path, inputs: dict[str, str] | None = None) -> Artifact | None:
    """Return a folder's artifact if the manifest matches the files and `inputs` (None: any inputs), else None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        intact = all(digest_file(folder / file) == digest for file, digest in manifest["outputs"].items())
        same_inputs = inputs is None or manifest["inputs"] == inputs
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, or not a manifest of this version
        return None
    return _artifact(folder, manifest) if intact and same_inputs else None


def uncommit(folder: Path) -> None:
    """Remove a stage's folder, manifest first, so that a half-removed folder does not count as committed."""
    manifest = folder / MANIFEST
    if manifest.exists():
        manifest.unlink()
        sync(folder)
    shutil.rmtree(folder, ignore_errors=True)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of torch, transformers and nightschool, which are read once per process."""
    return {package: version(package) for package in ("torch", "transformers", "nightschool")}


def _artifact(folder: Path, manifest: Mapping[str, Any]) -> Artifact:
    """Return a committed folder's artifact. The digest covers only outputs, so it survives an identical rerun."""
    return Artifact(folder=folder, digest=digest_of(manifest["outputs"]))


def digest_of(value: Any) -> str:
    """Return a digest (20 hex digits) of what a stage depends on: an artifact's own, else that of its JSON data."""
    if isinstance(value, Artifact):
        return value.digest
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True).encode()).hexdigest()[:20]


def _plain(value: Any) -> Any:
    """Convert a value to JSON data for hashing. A path becomes its name (for a checkpoint, a digest of its content)."""
    if isinstance(value, Artifact):
        return value.digest
    if identity := getattr(value, "identity", None):  # of a configuration section, or of a player
        return _plain(identity())
    if isinstance(value, Path):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a stage's input may not be a {type(value).__name__}")


def failed_with(*errors: type[BaseException]) -> Callable[[Any, Any, Any], bool]:
    """Return a `retry_condition_fn` that has Prefect retry a task only after these errors."""
    return lambda task, run, state: isinstance(getattr(state.data, "exception", state.data), errors)


worker_died = failed_with(WorkerDiedError)
