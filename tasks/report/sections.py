"""What the report says of the journal itself: the lines that were refused, and the picks of unknown checkpoints."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.distillation.trace_filter import FATES
from tasks.layout import ranking_place, rounds
from tasks.report.queries import read_json, read_table
from tasks.reward_model.overoptimization import unwatched
from tasks.stage import MANIFEST

FIRST = 5  # refused lines that are shown
LONGEST = 200  # characters of a reason: it may repeat what stands in the line


def journal_faults(night: Path) -> dict[str, Any]:
    """`refused`: how many lines the night's freeze refused, and `first`, the first of them with file, line and reason;
    `unknown_policies`: how many of its new picks are of a checkpoint that this home has never had.
    """
    table = read_table(night / "freeze_journal", "quarantine")
    refused: list[Any] = [] if table is None else table.to_dict("records")
    figures = (read_json(night / "freeze_journal", MANIFEST) or {}).get("figures", {})
    return {
        "refused": len(refused),
        "first": [row | {"reason": _cut(row["reason"])} for row in refused[:FIRST]],
        "unknown_policies": int(figures.get("unknown_policies", 0)),
    }


def fault_sentences(faults: Mapping[str, Any]) -> list[str]:
    """How many there are of each, as far as there are any."""
    told = {
        "refused": "Lines of the journal that were refused, and taught nothing",
        "unknown_policies": "New picks of a checkpoint that this home has never had, which count all the same",
    }
    return [f"{what}: {faults[name]}." for name, what in told.items() if faults[name]]


def _cut(reason: str) -> str:
    return reason if len(reason) <= LONGEST else f"{reason[:LONGEST]}…"


def reward_model_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """`outcome.json` of the stage `fit_reward_model` in sentences; none where no such stage ran."""
    if outcome is None:
        return []
    return [_whether(outcome), *(_made_of(outcome) if "accuracy" in outcome else ())]


def _whether(outcome: Mapping[str, Any]) -> str:
    if not outcome["serves"]:
        return f"No reward model served ({outcome['picks']} picks): {outcome['reason']}."
    accuracy = outcome["accuracy"]
    return (
        f"A reward model served: of {outcome['held_out']} held-out picks (of {outcome['picks']}) it found "
        f"{accuracy['value']:.0%} (95 % interval {accuracy['low']:.0%} to {accuracy['high']:.0%}; "
        f"chance is {outcome['chance']:.0%})."
    )


def _made_of(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Length, calibration and learning curve, all on the held-out picks."""
    length, bins = outcome["length"], outcome["calibration"]
    yield (
        f"Of the held-out picks it puts the longest answer first in {length['longest_top']:.0%}, the owner in "
        f"{length['longest_alone']:.0%}; the shortest is the owner's in {length['shortest_alone']:.0%}."
    )
    if bins:
        sure = sum(each["n"] * each["confidence"] for each in bins) / sum(each["n"] for each in bins)
        error = outcome["expected_calibration_error"]
        yield f"Of its first choice it is {sure:.0%} sure on average; expected calibration error {error:.0%}."
    if len(outcome["learning_curve"]) > 1:
        steps = (f"{step['value']:.0%} after {step['picks']} picks" for step in outcome["learning_curve"])
        yield f"How it learns: {', '.join(steps)}."


DRAWN = ("kept", "unknown", "later")  # the fates that differ between two lessons on the same traces


def trace_sources(night: Path) -> list[dict[str, Any]]:
    """How many traces of each source were kept and why others were not; of the lessons of its own answers as well.

    A second lesson reads the first one's again, which are told once: as the first one drew those it had room for.
    """
    return _told_once(night, "sources.json", _before_the_draw)


def distilled(counts: Mapping[str, int] | None) -> dict[str, int] | None:
    """A lesson's counts, with the sum of those that were `left_out` for what they are; None of no lesson."""
    if not counts:
        return None
    return {**counts, "left_out": sum(count for fate, count in counts.items() if fate not in DRAWN)}


def fates_met(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fates that any of the traces had."""
    return [fate for fate in FATES if any(row.get(fate) for row in rows)]


def trace_remarks(night: Path) -> list[str]:
    """A line each on the rows of files that are no traces, on the exam's problems among them, and on the teacher."""
    remarks = []
    bad = read_table(night / "import_traces", "quarantine")
    if bad is not None and len(bad):
        first = bad.iloc[0]
        where = f"{first['file']}:{first['line']}"
        remarks.append(
            f"Rows of files that are no worked solutions: {len(bad)}; the first: {where}: {first['reason']}."
        )
    hits = _told_once(night, "contamination.json")
    if hits:
        near = sum(hit["match"] == "near" for hit in hits)
        remarks.append(
            f"Worked solutions left out because they ask problems of the exam: {len(hits)}, {near} of them nearly and "
            f"not word for word; the first: {hits[0]['question'][:80]}"
        )
    asked = [read_json(folder, "asked.json") for folder in sorted(night.glob("ask_teacher*"))]
    return [*remarks, *(_teacher(one) for one in asked if one)]


def _told_once(night: Path, name: str, key: Callable[[dict[str, Any]], Any] = dict) -> list[dict[str, Any]]:
    """The rows of a file of all lessons, without those that an earlier one had, with the same `key`."""
    found: list[dict[str, Any]] = []
    for folder in _lessons(night):
        known = [key(row) for row in found]
        found += [row for row in read_json(folder, name) or [] if key(row) not in known]
    return found


def _before_the_draw(row: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """What a source's row was before a lesson drew those that it had room for."""
    others = {name: value for name, value in row.items() if name not in DRAWN}
    return others, sum(row.get(name, 0) for name in DRAWN)


def _lessons(night: Path) -> list[Path]:
    return sorted([*night.glob("distill*"), *night.glob("self_distill*")])


def _teacher(asked: Mapping[str, Any]) -> str:
    """One line, whatever happened."""
    name = f"The teacher {asked['teacher']}"
    if not asked["problems"]:
        return f"{name} was asked nothing: no problem is known that the student tried of late and never solved."
    told = (
        f"{name} answered {asked['answered']} of {asked['questions']} questions about {asked['problems']} problems "
        f"({asked['cached']} of them earlier), for {asked['tokens']} tokens"
    )
    told += f" and {asked['usd']:.4f} USD" if asked["usd"] else ""
    if asked["failed"]:
        told += "; without an answer: " + ", ".join(f"{count} × {why}" for why, count in asked["failed"].items())
    return told + (f"; it was not asked any further: {asked['stopped']}." if asked["stopped"] else ".")


SAID = {"reward/learned_z", "reward/tie_breaker"}  # the one or the other, wherever the reward model said something


@dataclass(frozen=True)
class LearnedRound:
    """One row: of a block's start only the ranking is known; NaN is what was not measured. `unwatched`: why the block
    that it begins cannot be watched, if so.
    """

    number: int
    is_start: bool  # of the block of which it is the first round
    reward: float
    owner: float
    kl: float
    length: float
    ranking: float
    unwatched: str | None


def learned_rounds(night: Path) -> list[LearnedRound]:
    """The rounds in which the learned reward was in use; none where no reward model served."""
    found = []
    for number, folder in rounds(night):
        figures = read_json(folder / "checkpoint", "metrics.json") or {}
        if SAID & figures.keys():  # `reward/learned` is of answers that came to their end, which none may have
            if (start := night / ranking_place(number, number - 1)).exists():
                found.append(_row(number, {}, start, is_start=True))
            found.append(_row(number, figures, night / ranking_place(number, number)))
    return found


def _row(number: int, figures: dict[str, Any], ranked: Path, *, is_start: bool = False) -> LearnedRound:
    names = ("reward/learned", "reward/learned_owner", "kl", "reward/learned_length")
    reward, owner, kl, length = (float(figures.get(name, math.nan)) for name in names)
    found = read_json(ranked, "ranking.json") or {}
    accuracy = found.get("accuracy")
    ranking = math.nan if accuracy is None else float(accuracy)
    why = unwatched(found["right"]) if is_start and found else None
    return LearnedRound(number, is_start, reward, owner, kl, length, ranking, why)
