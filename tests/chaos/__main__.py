"""`python -m tests.chaos --kills 40 --seed 7 [--real 6]`: kill nights at many points, resume them, check outcomes.

Prints one line: `kills 40, lost 0, repeated 0, orphans 0`; exits with 1 unless the last three are 0.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from flows import environment

environment.prepare()

from flows.orchestration.server import start_server, wait_until_ready  # noqa: E402
from flows.web.address import free_port  # noqa: E402
from tests.chaos.checks import Verdict  # noqa: E402
from tests.chaos.kills import kill_list  # noqa: E402
from tests.chaos.school import School, open_school  # noqa: E402
from tests.chaos.strike import strike, undisturbed  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="kills of nights of a tiny student")
    parser.add_argument("--seed", type=int, default=7, help="of the list of kills")
    parser.add_argument("--real", type=int, default=0, help="kills of nights on the real engine with the starter model")
    parser.add_argument("--jobs", type=int, default=1, help="nights at a time")
    parser.add_argument("--keep", type=Path, help="folder to keep the nights in")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, verdicts = chosen.keep or Path(folder), list[Verdict]()
        if chosen.kills:
            with _prefect(root / "server") as server:
                verdicts += _struck(open_school(root / "tiny", server), chosen.kills, chosen.seed, chosen.jobs)
        if chosen.real:  # each night starts its own Prefect server
            verdicts += _struck(open_school(root / "real", None, real=True), chosen.real, chosen.seed)
    lost, again, orphans = (sum(bool(getattr(v, n)) for v in verdicts) for n in ("lost", "repeated", "orphans"))
    print(f"kills {len(verdicts)}, lost {lost}, repeated {again}, orphans {orphans}")
    return int(bool(lost or again or orphans))


def _struck(school: School, count: int, seed: int, jobs: int = 1) -> Iterator[Verdict]:
    """Kill so many nights of a school, `jobs` at a time."""
    reference = undisturbed(school)
    kills = kill_list(reference.events, count, seed)
    with ThreadPoolExecutor(jobs) as pool:
        names = [f"kill-{number:02d}" for number in range(1, len(kills) + 1)]
        verdicts = pool.map(lambda name, trap: strike(school, name, [trap], reference), names, kills)
        for number, (trap, verdict) in enumerate(zip(kills, verdicts, strict=True), 1):
            print(f"{number:3}/{len(kills)}  {trap}: {verdict}", file=sys.stderr, flush=True)
            yield verdict


@contextmanager
def _prefect(folder: Path) -> Iterator[str]:
    """Start one Prefect server for all nights: it takes longer than such a night."""
    folder.mkdir(parents=True)
    os.environ.pop("PREFECT_API_URL", None)
    server, url = start_server(folder, free_port(), folder / "server.log")
    try:
        wait_until_ready(server, url, folder / "server.log")
        yield url
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
