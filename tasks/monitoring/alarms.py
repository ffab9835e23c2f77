"""What an alarm is, and those that only the morning can raise; the rounds' own are in `round_alarms.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FORGOTTEN_FROM, FORGOTTEN_TO = 0.15, 0.02
ENOUGH_TRIES = 8


@dataclass(frozen=True)
class Alarm:
    """A sign that a night goes wrong, which its owner must not overlook.

    `name` and `severe` tell it from others: a night raises no alarm twice. A severe one ends the learning, and nothing
    is promoted. `round`: the last round that the sentence speaks of; None: it speaks of none.
    """

    name: str
    severe: bool
    sentence: str
    round: int | None = None


def kind_alarms(history: Sequence[Mapping[str, tuple[float, float]]]) -> list[Alarm]:
    """Kinds of problems that the student never learned, or could solve during the night and then no more.

    `history`: for each round, by kind, the (fading) number of tries and of those solved.
    """
    best: dict[str, float] = {}
    for rates in history:
        for kind, (tried, solved) in rates.items():
            if tried >= ENOUGH_TRIES:
                best[kind] = max(best.get(kind, 0.0), solved / tried)
    last = {kind: rate for kind, rate in sorted(history[-1].items()) if rate[0] >= ENOUGH_TRIES} if history else {}
    never = [kind for kind in last if all(r[kind][1] <= FORGOTTEN_TO * r[kind][0] for r in history if kind in r)]
    forgotten = [
        f"{kind} ({best[kind]:.0%}, then {solved / tried:.0%})"
        for kind, (tried, solved) in last.items()
        if best[kind] >= FORGOTTEN_FROM and solved / tried <= FORGOTTEN_TO
    ]
    return _about(
        "unsolved_kinds", "Practised to the end and hardly ever solved, so that worked solutions would help", never
    ) + _about("forgotten_kinds", "Solved during the night and hardly ever at its end", forgotten)


def exam_alarms(ungraded: Mapping[str, tuple[int, int]]) -> list[Alarm]:
    """Alarms over the exam. `ungraded`: by part, how many answers the grader failed on, and how many there are."""
    parts = [f"{failed} of {answers} of {part}" for part, (failed, answers) in ungraded.items() if failed]
    return _about("exam_graders_failing", "Exam answers on which the grader failed, and which were left out", parts)


def _about(name: str, what: str, found: Sequence[str]) -> list[Alarm]:
    return [Alarm(name, False, f"{what}: {', '.join(found)}.")] if found else []
