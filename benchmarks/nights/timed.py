"""A real night in a child process that records when its stages begin and end.

    python -m benchmarks.nights.timed MOMENTS night --config FILE …

is the `nightschool` command with a handler on its log. `run_night` starts this command, and may stop it early.
"""

import json
import logging
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.load import STARTER
from conf.storage.home import SUMMARY, Home
from flows.run.child import end_child, start_child

DATE = "2026-01-01"
MOMENTS, LOG = "moments.jsonl", "night.log"
POLL = 0.5  # seconds
OF_A_ROUND = re.compile(r"round (\d+) · (?:.* · )?(.+)")
FEW_ROUNDS = [
    "budget_minutes=null",
    *("grpo.quiz_every_rounds=0", "exam.target.problems=8", "exam.guards=[]", "day.generated_preferences=0"),
]


@dataclass(frozen=True)
class Moment:
    """The moment at which the flow announced that a stage began or was done (`at`: seconds since the epoch)."""

    at: float
    stage: str
    done: bool


@dataclass(frozen=True)
class Round:
    """One round: when it began, wrote its new weights and gave way to the next stage, and its seconds by stage."""

    number: int
    begin: float
    updated: float
    end: float
    stages: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The wall-clock seconds until the next round (or another stage) began."""
        return self.end - self.begin


class Notes(logging.Handler):
    """Records what `Night.announced` logs, one line per moment."""

    def __init__(self, file: Path) -> None:
        super().__init__(logging.INFO)
        self.stream = file.open("w")

    def emit(self, record: logging.LogRecord) -> None:
        """Record that a stage begins (the record's `seconds` is None) or is done."""
        stage = getattr(record, "stage", None)
        if stage is not None:
            done = getattr(record, "seconds", None) is not None
            print(json.dumps({"at": record.created, "stage": stage, "done": done}), file=self.stream, flush=True)


def run_night(home: Path, overrides: Sequence[str], until: Callable[[Path], bool] = lambda folder: False) -> Path:
    """Run a starter night in the home, and return its folder. Once `until(folder)` is true, the night is killed.

    Raises RuntimeError if the night fails.
    """
    school = Home(home.resolve())
    school.make_private()
    folder = school.night(DATE)
    command = [sys.executable, "-m", "benchmarks.nights.timed", str(home / MOMENTS), "night", "--json", "--date", DATE]
    command += ["--config", str(STARTER), *(f"--set={override}" for override in overrides)]
    night = start_child(command, os.environ | {"NIGHTSCHOOL_HOME": str(school.root)}, home / LOG)
    try:
        while night.poll() is None:
            if until(folder):
                return folder
            time.sleep(POLL)
    finally:
        end_child(night)
    if night.returncode != 0:
        raise RuntimeError(f"the night failed: {(home / LOG).read_text()[-2000:]}")
    return folder


def why_over(folder: Path) -> str:
    """Return one line: why a finished night had no further rounds, and its alarms."""
    summary = json.loads((folder / SUMMARY).read_text())
    return " ".join(line for line in (summary["ended_early"], *summary["alarms"]) if line)


def moments(folder: Path) -> list[Moment]:
    """Return the recorded moments of a night so far, in order."""
    file = folder.parents[1] / MOMENTS
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [Moment(**json.loads(line)) for line in lines if line.endswith("\n")]


def rounds_of(found: Sequence[Moment]) -> list[Round]:
    """Return the finished rounds: those after which another stage has begun."""
    begin: dict[int, float] = {}
    updated: dict[int, float] = {}
    end: dict[int, float] = {}
    stages: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    began: dict[str, float] = {}
    current = 0  # 0: outside of the rounds
    for moment in found:
        place = OF_A_ROUND.fullmatch(moment.stage)
        number, stage = (int(place[1]), place[2]) if place else (0, moment.stage)
        if number != current:
            end[current], begin[number], current = moment.at, moment.at, number
        if not moment.done:
            began[moment.stage] = moment.at
            continue
        stages[number][stage] += moment.at - began[moment.stage]
        if stage == "update":
            updated[number] = moment.at
    return [Round(n, begin[n], updated[n], end[n], dict(stages[n])) for n in sorted(updated) if n and n in end]


def metrics_of(folder: Path, number: int) -> dict[str, float] | None:
    """Return a round's metrics, or None if they are not committed yet."""
    place = folder / f"round-{number:02d}" / "checkpoint"
    return json.loads((place / "metrics.json").read_text()) if (place / "manifest.json").exists() else None


def seconds_within(folder: Path, number: int) -> dict[str, float]:
    """Return the seconds of a round's committed stages, and the figures that they report, summed over refills.

    The stages measure these seconds themselves, so they do not include Prefect and the manifests.
    """
    seconds: dict[str, float] = defaultdict(float)
    for file in (folder / f"round-{number:02d}").rglob("manifest.json"):
        manifest: dict[str, Any] = json.loads(file.read_text())
        for name, value in {manifest["stage"]: manifest["seconds"], **manifest["figures"]}.items():
            seconds[name] += value
    return dict(seconds)


def parts(done: Round, metrics: Mapping[str, float], within: Mapping[str, float]) -> dict[str, float]:
    """Return the parts into which a round's wall-clock time divides, in seconds.

    `metrics`: the round's metrics. `within`: the result of `seconds_within`.
    """
    update = metrics["seconds_update"]
    staged = {name: within[name] for name in ("select_prompts", "sample", "score", "credit")}
    announced = sum(done.stages.values())
    return {
        "select prompts": staged["select_prompts"],
        "sync of the weights": within["sync"],
        "generate": within["generate"],
        "rollouts to their table": staged["sample"] - within["sync"] - within["generate"],
        "score": staged["score"],
        "credit": staged["credit"],
        "update": update,
        "new weights to the disk": done.stages["update"] - update,
        "Prefect and manifests": announced - done.stages["update"] - sum(staged.values()),
        "waiting for the state, the rest": done.seconds - announced,
    }


def overhead_share(of_a_round: Mapping[str, float]) -> float:
    """Return the share of a round that is neither sampling, grading nor update."""
    work = sum(of_a_round[name] for name in ("generate", "score", "update"))
    return 1 - work / sum(of_a_round.values())


def main() -> None:
    """Run the `nightschool` command and record its moments."""
    notes, *arguments = sys.argv[1:]
    logging.getLogger("nightschool").addHandler(Notes(Path(notes)))
    sys.argv = ["nightschool", *arguments]
    from flows import cli

    cli.main()


if __name__ == "__main__":
    main()
