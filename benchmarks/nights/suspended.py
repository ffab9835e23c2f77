"""A starter night on a machine that falls asleep: all its processes stand still for some minutes in a round."""

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.nights.timed import run_night
from conf.storage.home import SUMMARY
from conf.storage.layout import committed_rounds
from tasks.monitoring.incidents import incidents

ROUND = 3  # the round in which the processes are stopped


def suspended(minutes: float) -> dict[str, Any]:
    """Run a starter night that stands still for some minutes. Returns how it went on."""
    home, slept = make(SCHOOL / "suspended"), False
    shutil.rmtree(home)  # a finished night would not run again
    make(home)

    def sleep(folder: Path) -> bool:
        nonlocal slept
        if not slept and (folder / f"round-{ROUND:02d}" / "select_prompts" / "manifest.json").exists():
            slept = True
            processes = psutil.Process().children(recursive=True)
            for process in processes:
                with suppress(psutil.NoSuchProcess):  # it has ended
                    process.suspend()
            time.sleep(60 * minutes)
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()
        return False

    folder = run_night(home, [f"budget_minutes={15 + minutes}"], until=sleep)
    if not slept:
        raise RuntimeError(f"the night ended before round {ROUND}: {folder}")
    summary = json.loads((folder / SUMMARY).read_text())
    after = len(committed_rounds(folder)) - ROUND + 1
    return {"rounds from then on": after, "decision": summary["decision"], "incidents": incidents(folder)}
