"""A benchmark's runs: a line of JSON each, appended as soon as the run ends, so that several sittings add up."""

import itertools
import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from models.hf.hardware import compute_dtype, resolve_device
from tasks.evaluation.statistics import mcnemar, sign_flip

Run = dict[str, Any]


def recorded(file: Path) -> list[Run]:
    """Return the runs so far, in the order in which they ended; an empty list if there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_once(file: Path, asked: Run, run: Callable[[], Run]) -> Run:
    """Return the last recorded run of this kind. If there is none, do it and record it, with machine and commit."""
    known = [done for done in recorded(file) if asked.items() <= done.items()]
    if not known:
        known = [asked | {"machine": machine(), "commit": commit()} | run()]
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(known[-1]) + "\n")
    return known[-1]


def sweep(file: Path, run: Callable[..., Run], **axes: Sequence[Any]) -> list[Run]:
    """Do the missing runs of all combinations, seed by seed. Return all recorded runs.

    The names of `axes`, one of which is `seed`, are keys of the record and parameters of `run`.
    """
    for seed in axes["seed"]:
        for values in itertools.product(*(axes | {"seed": [seed]}).values()):
            asked = dict(zip(axes, values, strict=True))
            run_once(file, asked, partial(run, **asked))
    return recorded(file)


def by(runs: Iterable[Run], *names: str) -> dict[tuple[Any, ...], list[Run]]:
    """Return the runs in groups with the same values of these keys, in order of appearance."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(run[name] for name in names), []).append(run)
    return groups


def ordered(runs: Iterable[Run], **orders: Iterable[Any] | None) -> list[Run]:
    """Return the runs sorted by these keys: by a value's place in the given order or, for None, by the value itself."""
    places = {key: None if order is None else [*order] for key, order in orders.items()}
    return sorted(runs, key=lambda run: [run[key] if at is None else at.index(run[key]) for key, at in places.items()])


def paired(own: Sequence[Run], other: Sequence[Run], value: Callable[[Run], float]) -> list[float]:
    """Return the differences own − other of a value, for each seed that both have."""
    others = {run["seed"]: value(run) for run in other}
    return [value(run) - others[run["seed"]] for run in own if run["seed"] in others]


def flips(runs: Sequence[Run]) -> tuple[int, int, float]:
    """Return how many answers all runs together gained and lost, and the p-value of the one-sided exact test."""
    gained, lost = (sum(run[name] for run in runs) for name in ("gained", "lost"))
    return gained, lost, mcnemar(gained, lost)


def sampled_p(runs: Sequence[Run]) -> float:
    """Return the p-value of the one-sided exact test on each problem's number of right sampled answers (`sampled`)."""
    changes = sum((Counter(run["differences"]) for run in runs), Counter[str]())
    return sign_flip(np.repeat([float(more) for more in changes], [*changes.values()]))


def machine() -> str:
    """Return the processor's name, its vector instructions, and the number of cores that this process may use.

    An AMD processor also has its generation: Zen 3 and 4 are family 25, Zen 5 is 26, and Zen 3 has no AVX-512.
    """
    known = dict(re.findall(r"(model name|cpu family|flags)\s*:\s*(.+)", Path("/proc/cpuinfo").read_text()))
    name, vectors = known.get("model name", platform.machine()), torch.backends.cpu.get_cpu_capability()
    if "AMD" in name and (family := known.get("cpu family")) in ("25", "26"):
        name += f" Zen {5 if family == '26' else 4 if 'avx512f' in known['flags'] else 3}"
    return f"{name} ({vectors}), {len(os.sched_getaffinity(0))} cores"


def precision() -> str:
    """Return the precision in which this machine computes: `fp32` or `bf16`."""
    return "fp32" if compute_dtype(resolve_device("auto")) == torch.float32 else "bf16"


def commit() -> str:
    """Return the last commit that changed anything but docs and tests, with `-dirty` for such uncommitted changes.

    Docs do not count, because the runs themselves are recorded there.
    """
    commit, changed = _git("log", "-1", "--format=%h"), _git("status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changed else commit or "unknown"


def _git(*command: str) -> str:
    code = ["--", ".", ":!docs", ":!tests", ":!*.md"]
    output = subprocess.run(["git", *command, *code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    return output.stdout.strip()
