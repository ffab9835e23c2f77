"""Import the student's first checkpoint from the starter package, a folder or the Hugging Face hub."""

import importlib.util
import re
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from huggingface_hub import snapshot_download

from conf.schema import NEW, NEW_SIZES, StudentConfig
from conf.storage.durable import make_folder, read_json, room_for
from conf.storage.home import Home, InputError
from conf.storage.log import log
from models.engine.environment import trainer_environment
from models.hf.checkpoint import keep, new_draft, write_lineage
from models.hf.hardware import return_freed_memory
from models.hf.loading import PLAIN_TEMPLATE, check_config, load_tokenizer
from models.hf.starter import MISSING, PACKAGE, write_starter
from tasks.pretraining.fully import pretrain_fully
from tasks.stage import stage
from tasks.workers.worker import Worker

STARTER_MODEL = "starter"  # the model that comes with the installation
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
ADAPTER = "adapter_config.json"
TEMPLATE = "chat_template.jinja"
CODE = "*.py"  # copied only if `student.trust_remote_code` is set
GOOD = "name a folder written by save_pretrained of both model and tokenizer, or a hub id"


@stage(retries=2, resources=("checkpoints",))
def enroll(folder: Path, *, student: StudentConfig, checkpoints: Path) -> None:
    """Import the student into the home as a checkpoint without a parent, and write its digest to `checkpoint.txt`.

    An adapter in peft's format is merged into its base.

    The chat template is saved with the checkpoint, so that every program renders prompts the same way.
    """
    draft = new_draft(checkpoints)
    with room_for(draft):
        if student.source == STARTER_MODEL:
            without_bars = trainer_environment() | {"TQDM_DISABLE": "1"}
            with closing(Worker("starter", without_bars)) as worker:  # so that this process imports no models
                worker.call(write_starter, draft)
        else:
            patterns = [*PATTERNS, CODE] if student.trust_remote_code else PATTERNS
            source, adapter = find_student(student, patterns, Home(checkpoints.parent).students)
            draft.mkdir(parents=True)
            for file in (file for pattern in patterns for file in source.glob(pattern)):
                if adapter is None or not (file.suffix == ".safetensors" or file.name.endswith(".index.json")):
                    shutil.copy(file, draft / file.name)
            if adapter is not None:
                from models.engine.sync_probe import PROBE_FILE
                from models.hf.merging import merge_weights

                merge_weights(source, adapter, draft, student.trust_remote_code)
                if (adapter / TEMPLATE).is_file():
                    shutil.copy(adapter / TEMPLATE, draft / TEMPLATE)
                return_freed_memory()
                (draft / PROBE_FILE).unlink()  # a student that has not been trained here has none
        template = draft / TEMPLATE
        if student.chat_template is not None:
            template.write_text(student.chat_template)
        elif not template.exists() and not read_json(draft / "tokenizer_config.json", {}).get("chat_template"):
            template.write_text(PLAIN_TEMPLATE)  # a base model has no template
        write_lineage(draft, parent=None)
        (folder / "checkpoint.txt").write_text(keep(draft, checkpoints).name)


def find_model(source: str, revision: str | None, key: str, patterns: Sequence[str] = PATTERNS) -> Path:
    """Return a model's folder: `source` itself if that is a folder, else a local copy of the hub model with this id.

    If the model does not exist or is incomplete, raises an InputError that names the setting `key`.
    """
    folder = _local(source, revision, key, patterns)
    check_student(folder, key)
    return folder


def find_student(
    student: StudentConfig, patterns: Sequence[str] = PATTERNS, students: Path | None = None
) -> tuple[Path, Path | None]:
    """Return the folder of the student's model and, if the source is an adapter in peft's format, the adapter's.

    A student trained from scratch is in `students`, and is pretrained now if it is missing. Raises InputError if a
    folder does not exist or is incomplete.
    """
    if student.source.startswith(NEW) and students is not None:
        return _pretrained(students, student.source.removeprefix(NEW)), None
    folder = _local(student.source, student.revision, "student.source", patterns)
    if not (folder / ADAPTER).is_file():
        check_student(folder)
        return folder, None
    settings = read_json(folder / ADAPTER, {})
    base, revision = settings.get("base_model_name_or_path"), settings.get("revision")
    if not base or not any(folder.glob("adapter_model.safetensors")):
        what = "no adapter_model.safetensors" if base else f"no base_model_name_or_path in {ADAPTER}"
        raise InputError(f"student.source: {folder}: {what}; name a folder written by peft's save_pretrained")
    return find_model(str(base), revision, f"student.source: {folder}: the adapter's base", patterns), folder


def _pretrained(students: Path, size: str) -> Path:
    """Return the folder of a student trained from scratch, which is pretrained in a child process if it is missing."""
    folder = students / size
    if not folder.exists():
        make_folder(students)
        log.info("pretraining a new student of %s weights: %s", size, folder)
        with closing(Worker("pretraining", trainer_environment(), students / f"{size}.log")) as worker:
            worker.call(pretrain_fully, folder, size)
    return folder


def check_source(student: StudentConfig, students: Path) -> None:
    """Raise InputError unless the student is the installed starter, a loadable model folder or an existing hub id.

    A student trained from scratch must be in `students`, except for the smallest, which a night makes in minutes.
    """
    if student.source.startswith(NEW):
        if (folder := students / student.source.removeprefix(NEW)).exists():
            check_student(folder)
        elif folder.name != NEW_SIZES[0]:
            raise InputError(
                f"student.source: there is no student in {folder}; run: nightschool pretrain {folder.name}"
            )
        return
    if student.source == STARTER_MODEL:
        if importlib.util.find_spec(PACKAGE) is None:
            raise InputError(f"student.source: {MISSING}")
        return
    if Path(student.source).is_dir():
        source, _ = find_student(student)
        check_loads(source, trust_remote_code=student.trust_remote_code)
    else:
        _local(student.source, student.revision, "student.source", ["config.json", "tokenizer.json"])


def check_student(source: Path, key: str = "student.source") -> None:
    """Raise an InputError that names the setting `key` if a folder lacks a configuration, tokenizer or safetensors."""
    if not any(source.glob("*.safetensors")) and (pickled := next(source.glob("pytorch_model*.bin"), None)):
        raise InputError(
            f"{key}: {pickled}: pickled weights, which can run code when loaded; convert them to safetensors: "
            f"python -c \"from transformers import AutoModelForCausalLM as M; M.from_pretrained('{source}', "
            f"weights_only=True).save_pretrained('{source}')\""
        )
    needed = {"config.json": "a model's configuration", "tokenizer.json": "a tokenizer", "*.safetensors": "weights"}
    for pattern, what in needed.items():
        if not any(source.glob(pattern)):
            raise InputError(f"{key}: {source}: no {pattern} ({what}) in this folder; {GOOD}")


def check_loads(source: Path, key: str = "student.source", trust_remote_code: bool = False) -> None:
    """Raise InputError if transformers cannot load a folder's configuration or tokenizer. Weights are not loaded."""
    for file, load in (("config.json", check_config), ("tokenizer.json", load_tokenizer)):
        try:
            load(source, trust_remote_code)
        except Exception as error:  # whatever transformers and its parsers raise
            raise InputError(f"{key}: {source}: {file} cannot be loaded ({_reason(error)}); {GOOD}") from error


def _local(source: str, revision: str | None, key: str, patterns: Sequence[str]) -> Path:
    """Return `source` if that is a folder, else the folder of files that were downloaded from the hub."""
    if (folder := Path(source)).is_dir():
        return folder
    if not HUB_ID.fullmatch(source):
        raise InputError(f"{key}: {source}: there is no such folder; name one, or a hub id (owner/name)")
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=list(patterns)))
    except Exception as error:  # whatever the network, the hub or its client raise
        raise InputError(
            f"{key}: {source} cannot be loaded from the hub ({_reason(error)}); "
            "check the id and the network, or name a folder"
        ) from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
