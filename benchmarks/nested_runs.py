"""What a nested flow run costs a round: the seconds of an empty one, on a Prefect server of its own.

python -m benchmarks.nested_runs [--runs 22] [--json]
"""

import argparse
import json
import logging
import statistics
import tempfile
import time
from pathlib import Path

from flows import environment

environment.prepare()

from prefect import flow  # noqa: E402  # after the environment

from flows.orchestration.nested import run_nested  # noqa: E402
from flows.orchestration.server import prefect_api  # noqa: E402


def main() -> None:
    """Time the runs one after the other, each of which follows the one before, as rounds do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=22)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.getLogger("prefect").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, prefect_api(Path(folder) / "school", None):
        seconds = night(options.runs)
    result = {"runs": options.runs, "median": statistics.median(seconds), "max": max(seconds)}
    print(json.dumps(result) if options.json else f"median {result['median']:.3f} s, max {result['max']:.3f} s a run")


@flow(name="nightly")
def night(runs: int) -> list[float]:
    """Run empty nested runs in a chain. Returns the seconds of each."""
    seconds: list[float] = []
    before: list[object] = []
    for number in range(1, runs + 1):
        started = time.perf_counter()
        before = [run_nested("grpo", f"round {number}", lambda: None, before)]
        seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
