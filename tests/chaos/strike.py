"""A night that is killed and resumed, compared with an undisturbed one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conf.storage.home import Home
from flows.commands.night import INTERRUPTED
from tests.chaos import disk
from tests.chaos.checks import MOVED, Verdict, broken_aliases, committed_stages, differences, outcome, repeated
from tests.chaos.events import CHILDREN, Trap, sprung, trace
from tests.chaos.school import School, processes_of

PATIENCE = 10.0  # seconds after which a remaining process is an orphan
IN_FLIGHT = 0.1  # seconds before a power cut in which a manifest may have been moved and not synced


@dataclass(frozen=True)
class Reference:
    """An undisturbed night: its events and its outcome."""

    events: Sequence[tuple[float, str]]
    outcome: Mapping[str, Any]


def undisturbed(school: School) -> Reference:
    """Run an undisturbed night. Raises RuntimeError where it fails."""
    home = school.home("undisturbed")
    if code := school.start(home):
        raise RuntimeError(f"the undisturbed night ended with {code}: {school.watch(home) / 'said.log'}")
    return Reference(trace(school.watch(home)), outcome(home))


def strike(school: School, name: str, traps: Sequence[Trap], reference: Reference | None = None) -> Verdict:
    """Start a night with each of the traps in turn, and once more without, until it ends by itself.

    A trap for a child alone, which the night survives, is set together with the next one. With a `reference`, the
    outcomes are compared.
    """
    home, verdict, code = school.home(name), Verdict(), 0
    kept: dict[str, str] = {}
    for together in _starts(traps):
        code = school.start(home, *together)
        verdict.orphans += [f"left behind: {command}" for command in processes_of(home, PATIENCE)]
        verdict.repeated += repeated(trace(school.watch(home)), kept)
        kept = _surviving(home, school, together, kept, verdict)
        verdict.lost += broken_aliases(home)
        _check_the_traps(school, home, together, code, verdict)
        if code == 0:
            break
    verdict.lost += [f"the night ended with {code}: see {school.watch(home)}"] if code else []
    verdict.lost += differences(outcome(home), reference.outcome) if reference and not code else []
    return verdict


def _starts(traps: Sequence[Trap]) -> Iterator[list[Trap]]:
    """Yield the traps of each start; the last start has none."""
    together: list[Trap] = []
    for trap in traps:
        together.append(trap)
        if trap.victim not in CHILDREN:
            yield together
            together = []
    if together:
        yield together
    yield []


def _surviving(
    home: Home, school: School, traps: Sequence[Trap], before: Mapping[str, str], verdict: Verdict
) -> dict[str, str]:
    """Return the stages committed after a start and its power cut; none committed before may be missing."""
    standing = committed_stages(home)
    if traps and traps[-1].victim == "power":
        events = trace(school.watch(home))
        recent = {event for seconds, event in events if seconds > events[-1][0] - IN_FLIGHT}
        disk.cut_power(home.root, school.watch(home))
        left = committed_stages(home)
        gone = [place for place in standing.keys() - left.keys() if f"renamed {place}{MOVED}" not in recent]
        verdict.lost += [f"{place} was committed and did not outlive the power cut" for place in gone]
        standing = left
    verdict.lost += [
        f"{place} was committed before" for place, digest in before.items() if standing.get(place) != digest
    ]
    return standing


def _check_the_traps(school: School, home: Home, traps: Sequence[Trap], code: int, verdict: Verdict) -> None:
    """Check that every trap sprang, and that the night did not end with one of its children."""
    watch = school.watch(home)
    struck = [event for _, event in trace(watch) if event.startswith("no ")]
    quiet = [trap for number, trap in enumerate(traps) if not sprung(watch, number)]
    verdict.lost += [f"the trap never sprang: {trap}" for trap in quiet]
    if traps and not quiet and traps[-1].victim in CHILDREN and code and not struck:
        verdict.lost.append(f"the night ended with its {traps[-1].victim}: {code}")
    if traps and traps[-1].victim == "ctrl-c" and code != INTERRUPTED:
        verdict.lost.append(f"Ctrl-C ended the night with {code}")
