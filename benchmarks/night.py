"""Where a night's rounds spend their time, compared with plain vLLM and with TRL's whole step.

    python -m benchmarks.night [--json] [--rounds 7]
    python -m benchmarks.night --fixed

Runs two short real nights (flow, Prefect's server, MLflow, engine and trainer): one with the starter's rounds, one with
*medium* rounds (4 prompts of 106 tokens × 8 completions of 128). A round's time is the wall-clock time until the next
begins. The first round does not count, because it starts engine and trainer, nor the last, which writes its state while
nothing is sampled. *Medium* rounds with a useless group do not count either, because TRL updates on all of its groups.

`overhead_share` comes from the starter's rounds. `sampling_ratio` is measured while nothing else runs
(benchmarks/nights/sampling.py). --fixed takes a few minutes, and shows what a starter night costs apart from its work.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.inputs.starter import STARTER, starter
from benchmarks.machine.child import json_of
from benchmarks.nights import medium
from benchmarks.nights.fixed import fixed
from benchmarks.nights.timed import (
    FEW_ROUNDS,
    metrics_of,
    moments,
    overhead_share,
    parts,
    rounds_of,
    run_night,
    seconds_within,
)
from benchmarks.outputs.page import markdown
from models.engine.environment import trainer_environment

WORK = SCHOOL / "benchmarks"
FIGURES = ("sampling_ratio", "round_ratio", "overhead_share")
UNCOUNTED = 1  # rounds: the first starts engine and trainer
TRL_BATCHES, TRL_STEPS = (8, 32), 3  # the first step is not counted


def main() -> None:
    """Run both nights, or the one of --fixed, and print tables or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7, help="per night; the first and the last are not counted")
    parser.add_argument("--student", type=Path, default=STARTER)
    parser.add_argument("--fixed", action="store_true", help="list what a night costs apart from its work")
    options = parser.parse_args()
    if options.fixed:
        with tempfile.TemporaryDirectory(dir=make(WORK)) as work:
            print(fixed(Path(work).resolve()))
        return
    if options.rounds < 3:
        parser.error("--rounds: at least 3, the first and the last are not counted")
    starter(options.student)
    found = measure(options.student, options.rounds)
    print(json.dumps(found) if options.json else page(found))


def measure(student: Path, rounds: int) -> dict[str, Any]:
    """Return the three figures and the measurements behind them."""
    with tempfile.TemporaryDirectory(dir=make(WORK)) as work:
        home, lengths = Path(work).resolve(), [*FEW_ROUNDS, f"grpo.rounds={rounds}"]
        starter = profile(run_night(home / "starter", [f"student.source={student.resolve()}", *lengths]), rounds)
        sampling = json_of("benchmarks.nights.sampling", environment={"NIGHTSCHOOL_HOME": str(home / "starter")})
        endless = medium.endless_student(student, home / "endless")
        conversations = medium.write_problems(endless, home / "problems")
        longer = run_night(home / "medium", [*lengths, *medium.overrides(endless, home / "problems")])
        medium_round = profile(longer, rounds, useful=medium.PROMPTS)
        trl = trl_seconds(endless, conversations[: medium.PROMPTS])
    return {
        "sampling_ratio": sampling["stage"] / sampling["offline"],
        "round_ratio": medium_round["seconds"] / min(trl.values()),
        "overhead_share": starter["overhead_share"],
        "sampling_tokens_per_second": sampling,
        "trl_step_seconds": trl,
        "starter": starter,
        "medium": medium_round,
    }


def profile(folder: Path, rounds: int, useful: int = 0) -> dict[str, Any]:
    """Return medians over a night's counted rounds: seconds, their parts, overhead share, seconds to write the state.

    Leaves out rounds with fewer than `useful` useful groups. Raises RuntimeError if no round is left.
    """
    counted: list[dict[str, float]] = []
    state: list[float] = []
    for done in rounds_of(moments(folder)):
        metrics = metrics_of(folder, done.number)
        middle = UNCOUNTED < done.number < rounds
        if middle and metrics is not None and metrics["useful_groups"] >= useful:
            counted.append(parts(done, metrics, seconds_within(folder, done.number)))
            state.append(metrics["seconds_checkpoint"])
    if not counted:
        raise RuntimeError(f"no round of {folder} had {useful} useful groups")
    return {
        "seconds": statistics.median(sum(of_a_round.values()) for of_a_round in counted),
        "overhead_share": statistics.median(overhead_share(of_a_round) for of_a_round in counted),
        "parts": {name: statistics.median(of_a_round[name] for of_a_round in counted) for name in counted[0]},
        "state_seconds": statistics.median(state),
        "rounds": len(counted),
        "rounds_left_out": rounds - 1 - UNCOUNTED - len(counted),
    }


def trl_seconds(student: Path, conversations: Sequence[list[dict[str, str]]]) -> dict[str, float]:
    """Return the median seconds of TRL's whole step on these conversations, by batch size."""
    found = {}
    what = {"student": str(student), "conversations": conversations, "steps": TRL_STEPS}
    what |= {"size": medium.GROUP, "max_tokens": medium.COMPLETION_TOKENS}
    for batch in TRL_BATCHES:
        seconds = json_of("benchmarks.trl.step", json.dumps(what | {"batch": batch}), environment=trainer_environment())
        found[f"batch {batch}"] = statistics.median(seconds[1:])
    return found


def page(found: Mapping[str, Any]) -> str:
    """Return the figures as text."""
    nights = [found["starter"], found["medium"]]
    rows = [[part, *(f"{night['parts'][part]:.2f}" for night in nights)] for part in nights[0]["parts"]]
    rows.append(["**whole round**", *(f"**{night['seconds']:.2f}**" for night in nights)])
    rows.append(["state, beside the next round", *(f"{night['state_seconds']:.2f}" for night in nights)])
    rows.append(["rounds counted, left out", *(f"{night['rounds']}, {night['rounds_left_out']}" for night in nights)])
    rates = ", ".join(f"{name} {rate:.0f}" for name, rate in found["sampling_tokens_per_second"].items())
    steps = ", ".join(f"{batch}: {seconds:.1f} s" for batch, seconds in found["trl_step_seconds"].items())
    lines = [markdown("median seconds | starter | medium", rows), ""]
    lines += [f"tokens a second: {rates}", f"TRL's whole step, medium: {steps}", ""]
    return "\n".join([*lines, *(f"{name:16}{found[name]:8.3f}" for name in FIGURES)])


if __name__ == "__main__":
    main()
