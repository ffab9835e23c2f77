"""What an alarm is, and the alarms on the whole night; those after each round are in `round_alarms.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.report.text import percent
from tasks.rollouts.verdicts import FAILED

FORGOTTEN_FROM, FORGOTTEN_TO = 0.15, 0.02  # share solved at best, and at the end
ENOUGH_TRIES = 8  # fewer may be luck


@dataclass(frozen=True)
class Alarm:
    """A sign that a night goes wrong.

    A night raises each pair of `name` and `severe` once. A severe alarm ends the learning, and nothing is promoted.
    `round`: the last round that the sentence is about, if any.
    """

    name: str
    severe: bool
    sentence: str
    round: int | None = None


def kind_alarms(history: Sequence[Mapping[str, tuple[float, float]]]) -> list[Alarm]:
    """Return alarms on kinds of problems that the student never learned, or learned and forgot.

    `history`: for each round, by kind, the (decayed) number of tries and of those solved.
    """
    best: dict[str, float] = {}
    for rates in history:
        for kind, (tried, solved) in rates.items():
            if tried >= ENOUGH_TRIES:
                best[kind] = max(best.get(kind, 0.0), solved / tried)
    last = {kind: rate for kind, rate in sorted(history[-1].items()) if rate[0] >= ENOUGH_TRIES} if history else {}
    never = [kind for kind in last if all(r[kind][1] <= FORGOTTEN_TO * r[kind][0] for r in history if kind in r)]
    forgotten = [
        f"{kind} ({percent(best[kind], 0)}, then {percent(solved / tried, 0)})"
        for kind, (tried, solved) in last.items()
        if best[kind] >= FORGOTTEN_FROM and solved / tried <= FORGOTTEN_TO
    ]
    return [
        *_about("unsolved_kinds", "Kinds hardly ever solved all night (worked solutions would help)", never),
        *_about("forgotten_kinds", "Kinds solved during the night but hardly ever at its end", forgotten),
    ]


def exam_alarms(verdicts: Mapping[tuple[str, str], Mapping[str, int]]) -> list[Alarm]:
    """Return the alarm on the exam. `verdicts`: how often each was given, by part and model."""
    parts = [
        f"{counts[FAILED]} of {sum(counts.values())} of {part} ({model})"
        for (part, model), counts in verdicts.items()
        if counts[FAILED]
    ]
    return _about("exam_graders_failing", "The grader failed on exam answers, which were left out", parts)


def _about(name: str, what: str, items: Sequence[str]) -> list[Alarm]:
    return [Alarm(name, False, f"{what}: {', '.join(items)}.")] if items else []
