"""The `Alarm` class, and alarms about disk space, problem kinds and exams. `round_alarms.py` has those about rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from conf.storage.durable import size_of
from tasks.report.text import percent
from tasks.rollouts.verdicts import FAILED

FORGOTTEN_FROM, FORGOTTEN_TO = 0.15, 0.02  # solve rates: in the best round, and at the end
ENOUGH_TRIES = 8  # with fewer answers, a solve rate may be luck
STATE_PER_CHECKPOINT = 6  # state ÷ checkpoint size: two moments and a weight, 4 bytes each, per 2-byte bf16 weight
ROUNDS_HELD = 2  # rounds on disk at the same time: the newest one and the one being written
SPARE = 2  # spare room for exam, databases and report, as a multiple of a round's bytes


@dataclass(frozen=True)
class Alarm:
    """A sign that a night is going wrong.

    A night raises each combination of `name` and `severe` once. A severe alarm stops training and blocks promotion.
    `round`: the last round that the sentence is about; None if it is about the exam or the whole night.
    """

    name: str
    severe: bool
    sentence: str
    round: int | None = None


def disk_alarms(room: int, of_a_round: int, number: int) -> list[Alarm]:
    """Return one alarm if disk space is short after round `number`, or an empty list if there is enough.

    The alarm is severe if the next round may not fit. `room`: the free bytes plus those of older rounds, which the next
    rounds replace. `of_a_round`: the bytes that one round writes.
    """
    needed = ROUNDS_HELD * of_a_round
    if room >= needed + SPARE * of_a_round:
        return []
    sentence = (
        f"Disk space is running short: after round {number}, {room / 1e9:.1f} GB are left for rounds, "
        f"which need {needed / 1e9:.1f} GB at a time, and some to spare."
    )
    return [Alarm("disk_short", room < needed, sentence, number)]


def bytes_of_a_round(checkpoint: Path, state: Path) -> int:
    """Return the bytes that a round writes: its checkpoint and its trainer state (estimated if there is none yet)."""
    weights = size_of(checkpoint)
    return weights + (size_of(state) or STATE_PER_CHECKPOINT * weights)


def kind_alarms(rates: pd.DataFrame) -> list[Alarm]:
    """Return alarms about the kinds of problems that the student never learned, or learned and then forgot.

    `rates`: the table returned by `tasks.report.queries.solve_rates`.
    """
    if rates.empty:
        return []
    rates = rates[rates["answers"] >= ENOUGH_TRIES]
    never = rates[rates["best"] <= FORGOTTEN_TO].index
    lost = rates[(rates["best"] >= FORGOTTEN_FROM) & (rates["last"] <= FORGOTTEN_TO)]
    shares = zip(lost.index, lost["best"], lost["last"], strict=True)
    forgotten = [f"{kind} ({percent(best, 0)}, then {percent(last, 0)})" for kind, best, last in shares]
    return [
        *_about("unsolved_kinds", "Kinds hardly ever solved all night (a longer lesson or hints would help)", [*never]),
        *_about("forgotten_kinds", "Kinds solved during the night but hardly ever at its end", forgotten),
    ]


def exam_alarms(verdicts: Mapping[tuple[str, str], Mapping[str, int]]) -> list[Alarm]:
    """Return at most one alarm: the grader failed on exam answers. `verdicts`: verdict counts by (exam part, model)."""
    parts = [
        f"{counts[FAILED]} of {sum(counts.values())} of {part} ({model})"
        for (part, model), counts in verdicts.items()
        if counts[FAILED]
    ]
    return _about("exam_graders_failing", "The grader failed on exam answers, which were left out", parts)


def _about(name: str, what: str, items: Sequence[str]) -> list[Alarm]:
    return [Alarm(name, False, f"{what}: {', '.join(items)}.")] if items else []
