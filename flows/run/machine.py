"""Checks that the machine has what a night needs: a writable home, disk space and memory."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from conf.schema import NightConfig
from conf.storage.durable import existing_folder, free_bytes
from conf.storage.home import Home, InputError, why_unwritable
from conf.storage.log import log
from models.hf.hardware import GIB, compute_dtype, memory, output_of, resolve_device

Level = Literal["ok", "warning", "error"]
ANOTHER_HOME = "NIGHTSCHOOL_HOME=/path/to/school"

BF16_CAPABILITY = 8.0  # CUDA compute capability of Ampere, the first with bf16 matrix products
NO_BF16 = "it has no bf16 (Ampere or newer has); run on the CPU instead: make setup ACCELERATOR=cpu"


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was found, and what to do about it if there is a problem."""

    name: str
    level: Level
    found: str
    advice: str = ""


def require_machine(home: Home, config: NightConfig, *, room: bool = True) -> None:
    """Raise InputError if the machine cannot run a night. `room`: whether to require disk space for a whole night."""
    for finding in (check_home(home), *([check_disk(home, config)] if room else [])):
        if finding.level == "error":
            raise InputError(f"{finding.found}; {finding.advice}")
    if resolve_device("auto").type == "cuda" and compute_capability() < BF16_CAPABILITY:
        raise InputError(f"the GPU cannot be used: {NO_BF16}")
    if (finding := check_memory(config)).level != "ok":  # the need is estimated, and other programs may end meanwhile
        log.warning("memory: %s; %s", finding.found, finding.advice)


def check_home(home: Home) -> Finding:
    """Check by a test write whether the home is writable."""
    folder = existing_folder(home.root)
    if why := why_unwritable(folder):
        found = f"{home.root}: the home cannot be written to ({folder}: {why})"
        return Finding("home", "error", found, f"name a folder of your own: {ANOTHER_HOME}")
    return Finding("home", "ok", str(home.root))


def check_disk(home: Home, config: NightConfig) -> Finding:
    """Compare the free space under the home with what a whole night writes."""
    free, needed = free_bytes(home.root) / 1e9, disk_needed_gb(config)
    if free >= needed:
        return Finding("disk", "ok", f"{free:.1f} GB free, a night needs about {needed:.1f} GB")
    found = f"{home.root}: {free:.1f} GB free, but the night needs about {needed:.1f} GB"
    return Finding("disk", "error", found, f"make room, or name a home on another disk: {ANOTHER_HOME}")


def check_memory(config: NightConfig) -> Finding:
    """Compare the main memory with what a night needs. On a GPU's machine, only show it."""
    ram = memory()
    limit = f", {ram.limit:.1f} GiB of it for this container" if ram.limit < ram.total else ""
    found = f"{ram.total:.1f} GiB{limit}, {ram.available:.1f} GiB available"
    if resolve_device("auto").type == "cuda":
        return Finding("memory", "ok", found)
    needed = memory_needed_gib(config)
    found += f"; a night needs about {needed:.1f} GiB"
    if min(ram.total, ram.limit) < needed:
        advice = "lower engine.kv_cache_gb, train adapters (`lora`), or take a smaller student"
    elif ram.available < needed:
        advice = "close other programs, or lower engine.kv_cache_gb"
    else:
        return Finding("memory", "ok", found)
    return Finding("memory", "warning", found, advice)


def disk_needed_gb(config: NightConfig) -> float:
    """Estimate how many GB (10^9 bytes) a night writes under its home before it prunes: 7 to 10 for the starter night.

    Each trained parameter takes 14 bytes of trainer state (12 for its fp32 master weight and two moments, the rest for
    a share of tables). There are two such states, because one is deleted only once the next is durable. Each parameter
    takes 2 bytes per checkpoint (4 on a CPU that computes in float32). Databases, tables and report take 1 GB.
    """
    billions = billions_of_parameters(config.student.source)
    bytes_a_weight = compute_dtype(resolve_device("auto")).itemsize
    return 2 * 14 * trained_billions(config) + checkpoints_written(config) * bytes_a_weight * billions + 1.0


def memory_needed_gib(config: NightConfig) -> float:
    """Estimate the main memory in GiB of a night on a CPU: 6.3 for the starter, as was measured.

    Engine and trainer each hold the weights. The trainer adds 14 bytes per trained weight (gradient, two moments, and
    the rest of a master weight), and the activations of a pass of 1,280 tokens, which take about 8 bytes per weight.
    Libraries, the night's own process and Prefect's server take 2.3 GiB.
    """
    billions, trained = billions_of_parameters(config.student.source), trained_billions(config)
    bytes_a_weight = compute_dtype(resolve_device("auto")).itemsize
    gigabytes = 2 * bytes_a_weight * billions + 14 * trained + 8 * billions
    return gigabytes * 1e9 / GIB + config.engine.kv_cache_gb + 2.3


def trained_billions(config: NightConfig) -> float:
    """Return how many billions of weights a night trains.

    LoRA of rank r trains about r/1000 of the weights (rank 16 on a model of 0.6 billion parameters: 1.7 %).
    """
    billions = billions_of_parameters(config.student.source)
    return billions * min(1.0, config.lora.rank / 1000) if config.lora else billions


def checkpoints_written(config: NightConfig) -> int:
    """Return the maximum number of full-size checkpoints that a night has on disk at once.

    These are the champion, day copy, teacher and reward model; one checkpoint per lesson stage, or per channel of a
    `lessons` stage; those of the last two rounds; and, with several blocks, the last one of the previous block. If
    adapters are merged, the rounds add one checkpoint per block. If adapters are kept, lessons and rounds add none.
    """
    blocks = [step for step in config.steps if step.is_block]
    lessons = [step for step in config.steps if not step.is_block]
    learned = sum(len(config.channels) if step.kind == "lessons" else 1 for step in lessons)
    rounds = len(blocks) if config.merges else min(config.rounds, 2) + (len(blocks) > 1)
    others = 2 + (config.on_policy is not None) + config.wants_reward_model
    return others + (0 if config.lora and config.lora.keep else learned + rounds)


def billions_of_parameters(source: str) -> float:
    """Return a model's size in billions of parameters, judging by its file sizes or its hub id, or 1 if both fail."""
    if source == "starter":
        return 0.135
    if (adapter := Path(source, "adapter_config.json")).is_file():
        return billions_of_parameters(str(json.loads(adapter.read_text()).get("base_model_name_or_path")))
    if Path(source).is_dir():
        config = Path(source, "config.json")
        is_float32 = config.is_file() and re.search(r'"(torch_)?dtype": *"float32"', config.read_text(errors="replace"))
        bytes_a_weight = 4 if is_float32 else 2
        return sum(file.stat().st_size for file in Path(source).glob("*.safetensors")) / bytes_a_weight / 1e9 or 1.0
    size = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z])", source.lower())
    return float(size[1]) / (1 if size[2] == "b" else 1000) if size else 1.0


def compute_capability() -> float:
    """Return the newest GPU's compute capability, or infinity if nvidia-smi does not report it."""
    lines = output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader") or ""
    return max(map(float, re.findall(r"^\d+\.\d+$", lines, re.MULTILINE)), default=math.inf)
