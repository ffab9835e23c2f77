"""What an alarm is, and the alarms on the whole night; those after each round are in `round_alarms.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

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


def kind_alarms(rates: pd.DataFrame) -> list[Alarm]:
    """Return alarms on kinds of problems that the student never learned, or learned and forgot.

    `rates`: as `tasks.report.queries.solve_rates` returns them.
    """
    if rates.empty:
        return []
    rates = rates[rates["answers"] >= ENOUGH_TRIES]
    never = rates[rates["best"] <= FORGOTTEN_TO].index
    lost = rates[(rates["best"] >= FORGOTTEN_FROM) & (rates["last"] <= FORGOTTEN_TO)]
    forgotten = [f"{row.Index} ({percent(row.best, 0)}, then {percent(row.last, 0)})" for row in lost.itertuples()]
    return [
        *_about("unsolved_kinds", "Kinds hardly ever solved all night (worked solutions would help)", [*never]),
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
