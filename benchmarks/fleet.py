"""A week of many owners' nights on one work pool: how many machines do they need, and what does a night cost?

    python -m benchmarks.fleet [--students 1000] [--machines 20 25 30 40 50] [--days 7] [--seed 1]

A simulation with measured figures; nothing is trained. Each night is submitted at some minute of its owner's evening,
waits for a machine in order of arrival, and ends by the morning: one that begins late has fewer rounds, as a night with
a `deadline` does, and one that begins too late for its exam is missed. Machines fail; a night whose machine failed goes
on on the next free one from its last committed stage, before those that wait. Prints, for each number of machines, the
shares of nights that were whole, shortened and missed, the wait, how busy the machines were, and the price of a night.
"""

import argparse
import heapq
import itertools
import random
from collections import deque
from dataclasses import dataclass, field

EVENING, LATEST, MORNING = 21 * 60, 26 * 60, 30.5 * 60  # minutes of a day: 21:00, 02:00 and 06:30 of the next
WHOLE, SPREAD = 13.1, 0.8  # minutes of a starter night with two cores: mean and deviation of docs/performance.md
LEAST = 7.0  # minutes of one with a lesson and its exams, but no round: an estimate, as the next two
STAGE, RESTART = 0.7, 0.5  # minutes: the longest that a kill in the rounds costs, and to begin again


@dataclass(frozen=True)
class Fleet:
    """What is simulated; `failures`: of a machine, per hour that it runs; `repair`: minutes until it is back."""

    students: int
    machines: int
    days: int = 7
    failures: float = 0.002
    repair: float = 30.0
    seed: int = 1


@dataclass
class Night:
    """A night: when it was submitted and must have ended, and the minutes that it still needs."""

    submitted: float
    deadline: float
    left: float
    began: float | None = None
    shortened: bool = False


@dataclass
class Outcome:
    """What became of the nights. `waits`: minutes of those that began. `busy`: machine-minutes, those lost included."""

    whole: int = 0
    shortened: int = 0
    missed: int = 0
    failures: int = 0
    busy: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def nights(self) -> int:
        """All that were submitted."""
        return self.whole + self.shortened + self.missed


def simulate(fleet: Fleet) -> Outcome:
    """Run the week, event by event."""
    chance, outcome = random.Random(fleet.seed), Outcome()
    waiting, free = deque[Night](), fleet.machines
    events: list[tuple[float, int, str, Night | None]] = []  # minute, a number that orders equals, what, whose

    def plan(minute: float, what: str, night: Night | None = None) -> None:
        heapq.heappush(events, (minute, next(numbers), what, night))

    numbers = itertools.count()
    for day in range(fleet.days):
        for _ in range(fleet.students):
            submitted = day * 1440 + chance.triangular(EVENING, LATEST)
            needed = max(LEAST, chance.gauss(WHOLE, SPREAD))
            plan(submitted, "submitted", Night(submitted, day * 1440 + MORNING, needed))
    while events:
        now, _, what, night = heapq.heappop(events)
        match what, night:
            case "submitted", Night():
                waiting.append(night)
            case "done", Night():
                free += 1
                outcome.shortened += night.shortened
                outcome.whole += not night.shortened
            case "failed", Night():
                outcome.failures += 1
                waiting.appendleft(night)
                plan(now + fleet.repair, "repaired")
            case _:
                free += 1
        while waiting and free:
            night = waiting.popleft()
            if now + min(LEAST, night.left) > night.deadline:
                outcome.missed += 1
                continue
            if night.began is None:
                night.began = now
                outcome.waits.append(now - night.submitted)
            if now + night.left > night.deadline:
                night.left, night.shortened = night.deadline - now, True
            free -= 1
            until_failure = 60 * chance.expovariate(fleet.failures) if fleet.failures else float("inf")
            outcome.busy += min(until_failure, night.left)
            if until_failure < night.left:
                night.left += min(until_failure, chance.uniform(0, STAGE)) + RESTART - until_failure
                plan(now + until_failure, "failed", night)
            else:
                plan(now + night.left, "done", night)
    return outcome


def row(fleet: Fleet, usd_per_hour: float) -> str:
    """Return a row of the table."""
    found = simulate(fleet)
    waits = sorted(found.waits)
    shares = (100 * number / found.nights for number in (found.whole, found.shortened, found.missed))
    hours = fleet.days * (MORNING - EVENING) / 60
    busy = found.busy / 60 / (fleet.machines * hours)
    usd = fleet.machines * hours * usd_per_hour / (found.nights - found.missed or 1)
    median, late = waits[len(waits) // 2], waits[int(0.95 * len(waits))]
    cells = [*(f"{share:.1f} %" for share in shares), f"{median:.0f}, {late:.0f} min", f"{100 * busy:.0f} %"]
    return f"| {fleet.machines} | {' | '.join(cells)} | {found.failures} | {usd:.3f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--machines", type=int, nargs="+", default=[20, 25, 30, 40, 50])
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=float, default=0.002, help="of a machine, per hour")
    parser.add_argument("--usd-per-hour", type=float, default=0.05, help="of a machine with two cores, an assumption")
    options = parser.parse_args()
    print(
        "| machines | whole | shortened | missed | wait: median, 95 % | busy, 21:00 to 6:30 | failures | USD a night |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for machines in options.machines:
        fleet = Fleet(options.students, machines, options.days, options.failures, seed=options.seed)
        print(row(fleet, options.usd_per_hour))


if __name__ == "__main__":
    main()
