"""What a night needs of its machine: a home that it can write to, room on the disk, and its port."""

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from conf.schema import NightConfig
from conf.storage.durable import existing_folder, free_bytes
from conf.storage.home import Home, InputError
from flows.web.address import is_free
from models.hf.hardware import compute_dtype, resolve_device

Level = Literal["ok", "warning", "error"]
ANOTHER_HOME = "NIGHTSCHOOL_HOME=/path/to/school"


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and what to do unless it is good."""

    name: str
    level: Level
    found: str
    advice: str = ""


def require_machine(home: Home, config: NightConfig, *, room: bool = True) -> None:
    """Raise InputError for what must stop a night. `room`: whether the disk must have room for a whole one."""
    for finding in (check_home(home), *([check_disk(home, config)] if room else []), *check_port(config)):
        if finding.level == "error":
            raise InputError(f"{finding.found}; {finding.advice}")


def check_home(home: Home) -> Finding:
    """Try to write to the home, because permission bits do not tell root the truth."""
    folder = existing_folder(home.root)
    try:
        with tempfile.TemporaryDirectory(prefix=".nightschool-", dir=folder) as probe:
            Path(probe, "probe").write_bytes(b"night school")
    except OSError as error:
        found = f"{home.root}: the home cannot be written to ({folder}: {error.strerror})"
        return Finding("home", "error", found, f"name a folder of your own: {ANOTHER_HOME}")
    return Finding("home", "ok", str(home.root))


def check_disk(home: Home, config: NightConfig) -> Finding:
    """Compare the free space under the home with what a whole night writes."""
    free, needed = free_bytes(home.root) / 1e9, disk_needed_gb(config)
    if free >= needed:
        return Finding("disk", "ok", f"{free:.1f} GB free, a night needs about {needed:.1f} GB")
    found = f"{home.root}: {free:.1f} GB free, but the night needs about {needed:.1f} GB"
    return Finding("disk", "error", found, f"make room, or name a home on another disk: {ANOTHER_HOME}")


def check_port(config: NightConfig) -> Iterator[Finding]:
    """Check the port of the night's own Prefect server, where it names one and starts a server."""
    port = config.prefect.port
    if port is None or os.environ.get("PREFECT_API_URL"):
        return
    if is_free(port):
        yield Finding(f"port {port}", "ok", "free for the night's Prefect server")
    else:
        advice = "take another, or leave it out for any that is free: --set prefect.port=null"
        yield Finding(f"port {port}", "error", f"prefect.port: {port} is taken by another program", advice)


def disk_needed_gb(config: NightConfig) -> float:
    """Return about how many GB (10^9 bytes) a night writes under its home before it prunes; 8 for the starter night.

    Per trained parameter: 14 bytes of trainer state (fp32 master weights and two moments, and a share of
    tables), twice, because the last state but one goes when the next is durable. Per parameter of the model
    2 bytes a checkpoint (4 on a CPU that computes in float32). 1 GB for the databases, tables and the report.
    """
    billions = billions_of_parameters(config.student.source)
    # LoRA of rank r trains about r/1000 of the weights (rank 16 of a model of 0.6 billion: 1.7 %)
    trained = billions * min(1.0, config.lora.rank / 1000) if config.lora else billions
    bytes_a_weight = compute_dtype(resolve_device("auto")).itemsize
    return 2 * 14 * trained + checkpoints_written(config) * bytes_a_weight * billions + 1.0


def checkpoints_written(config: NightConfig) -> int:
    """Return how many checkpoints of the model's size a night has on the disk at once, at most.

    The champion, the day copy, a teacher and the reward model; one for each lesson and each kind of feedback, and half
    of one that made the student worse; the last two rounds', and where there are several blocks the last of the block
    before. With adapters, one for each block in place of the rounds'; adapters that are kept take no room.
    """
    blocks = [step for step in config.steps if step.is_block]
    lessons = [step for step in config.steps if not step.is_block]
    learned = sum(len(config.channels) if step.kind == "lessons" else 1 for step in lessons)
    learned += int(learned > 0 and config.lessons.quiz_problems > 0)
    rounds = len(blocks) if config.merges else min(config.rounds, 2) + (len(blocks) > 1)
    others = 2 + (config.on_policy is not None) + config.wants_reward_model
    return others + (0 if config.lora and config.lora.keep else learned + rounds)


def billions_of_parameters(source: str) -> float:
    """Return a model's size: measured for a folder, read from the name of a hub id, else 1."""
    if source == "starter":
        return 0.135
    if Path(source).is_dir():
        return sum(file.stat().st_size for file in Path(source).glob("*.safetensors")) / 2e9 or 1.0
    size = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z])", source.lower())
    return float(size[1]) / (1 if size[2] == "b" else 1000) if size else 1.0
