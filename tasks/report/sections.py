"""The report's paragraphs on the journal, the worked solutions, the reward model and the rounds that used it.

Each says what a stage committed in the night's folder, and nothing of a stage that did not run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.distillation.trace_filter import FATES
from tasks.layout import ranking_path, rounds
from tasks.report.queries import read_json, read_table
from tasks.report.text import percent, percent_range, plural
from tasks.reward_model.overoptimization import unwatched

FIRST = 5  # refused lines that are shown
LONGEST = 200  # characters of a reason, which may repeat what the line says
DRAWN = ("kept", "unknown", "later")  # fates that may differ between two lessons on the same traces
LEARNED = {"reward/learned_z", "reward/tie_breaker"}  # every round that used the reward model has one of them


@dataclass(frozen=True)
class LearnedRound:
    """A round that used the reward model; before a block's first round only the ranking is known. NaN: not measured.

    `unwatched`: why over-optimisation cannot be noticed in the block that begins here; None where it can.
    """

    number: int
    is_start: bool  # before the first round of a block
    reward: float
    owner: float
    kl: float
    length: float
    ranking: float
    unwatched: str | None


def journal_faults(night: Path) -> dict[str, Any]:
    """Count the journal's lines that were refused; `first` holds the first ones, each with file, line and reason."""
    table = read_table(night / "freeze_journal", "quarantine")
    refused: list[Any] = [] if table is None else table.to_dict("records")
    return {
        "refused": len(refused),
        "first": [row | {"reason": _shortened(row["reason"])} for row in refused[:FIRST]],
    }


def journal_sentences(faults: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the journal's lines that were refused, if there are any."""
    return [f"Journal lines that were refused and taught nothing: {faults['refused']}."] if faults["refused"] else []


def trace_sources(night: Path) -> list[dict[str, Any]]:
    """Return how many traces of each source had each fate, over all lessons on worked solutions and own answers.

    A second lesson that reads a source again does not count it again.
    """
    return _rows_of_lessons(night, "sources.json", _before_drawing)


def fates_met(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fates that any trace had."""
    return [fate for fate in FATES if any(row.get(fate) for row in rows)]


def trace_remarks(night: Path) -> list[str]:
    """Return sentences on imported rows that were refused, on traces of exam problems, and on the teacher."""
    remarks = []
    refused = read_table(night / "import_traces", "quarantine")
    if refused is not None and len(refused):
        first = refused.iloc[0]
        remarks.append(
            f"Imported rows that are not worked solutions: {len(refused)}. "
            f"The first: {first['file']}:{first['line']}: {first['reason']}."
        )
    if hits := _rows_of_lessons(night, "contamination.json"):
        near = sum(hit["match"] == "near" for hit in hits)
        remarks.append(
            f"Worked solutions of exam problems, left out: {len(hits)} ({len(hits) - near} word for word, {near} "
            f"nearly). The first: {hits[0]['question'][:80]}"
        )
    asked = [read_json(folder, "asked.json") for folder in sorted(night.glob("ask_teacher*"))]
    return [*remarks, *(_on_teacher(answers) for answers in asked if answers)]


def judge_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """Return `outcome.json` of the stage `examine_judge` in sentences; none where no judge was configured."""
    if outcome is None:
        return []
    accuracy, stopped = outcome["accuracy"], outcome["stopped"]
    share, interval = percent(accuracy["value"], 0), percent_range(accuracy["low"], accuracy["high"], 0)
    served = "ranked answers" if outcome["serves"] else "was not used: it did not prove itself"
    sentences = [
        f"The judge {outcome['judge']} {served}. It ranks your choice first in {share} of "
        f"{plural(accuracy['n'], 'held-out pick')} (95 % interval {interval} %; "
        f"chance {percent(outcome['chance'], 0)})."
    ]
    if unjudged := outcome["groups"] - outcome["judged"]:
        sentences.append(f"In {unjudged} of them its orders disagreed, or a ranking was missing.")
    if outcome["order_flips"] is not None:
        sentences.append(f"Another order changed its best answer in {percent(outcome['order_flips'], 0)} of the cases.")
    return [*sentences, f"It stopped answering: {stopped}."] if stopped else sentences


def reward_model_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """Return `outcome.json` of the stage `fit_reward_model` in sentences; none where it did not run."""
    if outcome is None:
        return []
    if not outcome["serves"]:
        verdict = f"No reward model was used ({outcome['picks']} picks): {outcome['reason']}."
    else:
        held_out, accuracy = outcome["held_out"], outcome["accuracy"]
        share, interval = percent(accuracy["value"], 0), percent_range(accuracy["low"], accuracy["high"], 0)
        verdict = (
            f"A reward model was used. Of {outcome['picks']} picks, {held_out} were held out; your choice is ranked "
            f"first in {round(accuracy['value'] * held_out)} of them ({share}; 95 % interval {interval} %; "
            f"chance {percent(outcome['chance'], 0)})."
        )
    return [verdict, *(_on_ranking(outcome) if "accuracy" in outcome else ())]


def day_copy_sentences(night: Path) -> list[str]:
    """Return sentences on your day copy, its lessons and whether the night began with it; none without one."""
    replayed, start = read_json(night / "replay_day", "day.json"), read_json(night / "choose_start", "start.json")
    if replayed is None or not replayed["learned"]:
        return []
    sentences = [f"The day copy learned {replayed['learned']} of {plural(replayed['lessons'], 'lesson')}."]
    if start is None:
        return sentences
    begun = "The night began with it" if start["day"] else "The night did not begin with it"
    return [*sentences, f"{begun}: {' '.join(start['reasons'])}"]


def learned_rounds(night: Path) -> list[LearnedRound]:
    """Return the rounds that used the reward model, each block's preceded by its start."""
    found = []
    for number, folder in rounds(night):
        figures = read_json(folder / "checkpoint", "metrics.json") or {}
        if LEARNED & figures.keys():
            if (start := night / ranking_path(number, number - 1)).exists():
                found.append(_learned_round(number, {}, start, is_start=True))
            found.append(_learned_round(number, figures, night / ranking_path(number, number)))
    return found


def _shortened(reason: str) -> str:
    return reason if len(reason) <= LONGEST else f"{reason[:LONGEST]}…"


def _rows_of_lessons(night: Path, name: str, key: Callable[[dict[str, Any]], Any] = dict) -> list[dict[str, Any]]:
    """Return the rows of a JSON file of all lessons, without those whose `key` an earlier lesson had."""
    found: list[dict[str, Any]] = []
    for folder in sorted([*night.glob("distill*"), *night.glob("self_distill*")]):
        known = [key(row) for row in found]
        found += [row for row in read_json(folder, name) or [] if key(row) not in known]
    return found


def _before_drawing(row: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return what a source's row was before the lesson drew the traces that fit into it."""
    others = {name: value for name, value in row.items() if name not in DRAWN}
    return others, sum(row.get(name, 0) for name in DRAWN)


def _on_teacher(asked: Mapping[str, Any]) -> str:
    teacher = f"The teacher {asked['teacher']}"
    if not asked["problems"]:
        return f"{teacher} was not asked: there is no problem that the student tried lately and never solved."
    cost = f"{asked['tokens']} tokens"
    sentence = (
        f"{teacher} answered {asked['answered']} of {asked['questions']} questions on {asked['problems']} problems "
        f"({asked['cached']} from the cache) for {cost}."
    )
    if asked["failed"]:
        sentence += f" Without an answer: {', '.join(f'{count} × {why}' for why, count in asked['failed'].items())}."
    return sentence + (f" It was asked no further: {asked['stopped']}." if asked["stopped"] else "")


def _on_ranking(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on length and calibration, both measured on the held-out picks."""
    length, bins = outcome["length"], outcome["calibration"]
    yield (
        f"It ranks the longest answer first in {percent(length['longest_top'], 0)} of the held-out picks; you chose "
        f"the longest in {percent(length['longest_alone'], 0)}, the shortest in {percent(length['shortest_alone'], 0)}."
    )
    if bins:
        confidence = sum(each["n"] * each["confidence"] for each in bins) / sum(each["n"] for each in bins)
        yield (
            f"On average it gives its first choice a probability of {percent(confidence, 0)} (expected calibration "
            f"error {percent(outcome['expected_calibration_error'], 0)})."
        )


def _learned_round(number: int, figures: dict[str, Any], ranked: Path, *, is_start: bool = False) -> LearnedRound:
    names = ("reward/learned", "reward/learned_owner", "kl", "reward/learned_length")
    reward, owner, kl, length = (float(figures.get(name, math.nan)) for name in names)
    ranking = read_json(ranked, "ranking.json") or {}
    accuracy = ranking.get("accuracy")
    return LearnedRound(
        number,
        is_start,
        reward,
        owner,
        kl,
        length,
        ranking=math.nan if accuracy is None else float(accuracy),
        unwatched=unwatched(ranking["right"]) if is_start and ranking else None,
    )
