"""The report's paragraphs on the journal, the worked solutions, judge and reward model, and your day copy.

Each says what a stage committed in the night's folder, and nothing of a stage that did not run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conf.storage.layout import committed_json, ranking_path, rounds
from tasks.report.queries import read_table
from tasks.report.text import percent, percent_range, plural
from tasks.reward_model.overoptimization import unwatched

FIRST = 5  # refused lines that are shown
LONGEST = 200  # characters of a reason, which may repeat what the line says


def journal_faults(night: Path) -> dict[str, Any]:
    """Count the journal's lines that were refused; `first` holds the first ones, each with file, line and reason."""
    table = read_table(night / "freeze_journal", "quarantine")
    refused: list[Any] = [] if table is None else table.to_dict("records")
    first = [
        row | {"reason": row["reason"][:LONGEST] + "…" * (len(row["reason"]) > LONGEST)} for row in refused[:FIRST]
    ]
    return {"refused": len(refused), "first": first}


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
    lessons = sorted([*night.glob("distill*"), *night.glob("self_distill*")])
    hits: list[Any] = []
    for folder in lessons:  # a later lesson may meet the same ones again
        hits += [hit for hit in committed_json(folder, "contamination.json") or [] if hit not in hits]
    if hits:
        near = sum(hit["match"] == "near" for hit in hits)
        remarks.append(
            f"Worked solutions of exam problems, left out: {len(hits)} ({len(hits) - near} word for word, {near} "
            f"nearly). The first: {hits[0]['question'][:80]}"
        )
    asked = [committed_json(folder, "asked.json") for folder in sorted(night.glob("ask_teacher*"))]
    return [*remarks, *(_on_teacher(answers) for answers in asked if answers)]


def judge_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """Return `outcome.json` of the stage `examine_judge` in sentences; none where no judge was configured."""
    if outcome is None:
        return []
    share, certain = _certain(outcome)
    served = "ranked answers" if outcome["serves"] else "was not used: it did not prove itself"
    picks = plural(outcome["accuracy"]["n"], "held-out pick")
    sentences = [
        f"The judge {outcome['judge']} {served}. It ranks your choice first in {share} of {picks} ({certain})."
    ]
    if unjudged := outcome["groups"] - outcome["judged"]:
        sentences.append(f"In {unjudged} of them its orders disagreed, or a ranking was missing.")
    if outcome["order_flips"] is not None:
        sentences.append(f"Another order changed its best answer in {percent(outcome['order_flips'], 0)} of the cases.")
    return [*sentences, f"It stopped answering: {outcome['stopped']}."] if outcome["stopped"] else sentences


def reward_model_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """Return `outcome.json` of the stage `fit_reward_model` in sentences; none where it did not run."""
    if outcome is None:
        return []
    if not outcome["serves"]:
        verdict = f"No reward model was used ({outcome['picks']} picks): {outcome['reason']}."
    else:
        held_out, (share, certain) = outcome["held_out"], _certain(outcome)
        verdict = (
            f"A reward model was used. Of {outcome['picks']} picks, {held_out} were held out; your choice is ranked "
            f"first in {round(outcome['accuracy']['value'] * held_out)} of them ({share}; {certain})."
        )
    if "accuracy" not in outcome:
        return [verdict]
    length = {name: percent(outcome["length"][name], 0) for name in ("longest_top", "longest_alone", "shortest_alone")}
    return [
        verdict,
        f"It ranks the longest answer first in {length['longest_top']} of the held-out picks; you chose the longest in "
        f"{length['longest_alone']}, the shortest in {length['shortest_alone']}.",
    ]


def day_copy_sentences(night: Path) -> list[str]:
    """Return sentences on your day copy, its lessons and whether the night began with it; none without one."""
    replayed = committed_json(night / "replay_day", "day.json")
    start = committed_json(night / "choose_start", "start.json")
    if replayed is None or not replayed["learned"]:
        return []
    sentences = [f"The day copy learned {replayed['learned']} of {plural(replayed['lessons'], 'lesson')}."]
    if start is None:
        return sentences
    begun = "The night began with it" if start["day"] else "The night did not begin with it"
    return [*sentences, f"{begun}: {' '.join(start['reasons'])}"]


def watch_sentences(night: Path) -> list[str]:
    """Return how to notice that the student learns to please the reward model alone; none where it was not used."""
    starts = {
        number: committed_json(night / ranking_path(number, number - 1), "ranking.json") for number, _ in rounds(night)
    }
    reasons = {number: unwatched(ranking["right"]) for number, ranking in starts.items() if ranking}
    if not reasons:
        return []
    return [
        "A student can learn to please it without pleasing you: then the learned reward rises, and the student itself "
        "ranks fewer of your held-out picks first.",
        *(f"From round {number} on {reason}." for number, reason in reasons.items() if reason),
    ]


def _certain(outcome: Mapping[str, Any]) -> tuple[str, str]:
    """Return the share of picks that are ranked first, and its interval beside chance."""
    accuracy = outcome["accuracy"]
    interval = percent_range(accuracy["low"], accuracy["high"], 0)
    return percent(accuracy["value"], 0), f"95 % interval {interval} %; chance {percent(outcome['chance'], 0)}"


def _on_teacher(asked: Mapping[str, Any]) -> str:
    teacher = f"The teacher {asked['teacher']}"
    if not asked["problems"]:
        return f"{teacher} was not asked: there is no problem that the student tried lately and never solved."
    sentence = (
        f"{teacher} answered {asked['answered']} of {asked['questions']} questions on {asked['problems']} problems "
        f"({asked['cached']} from the cache) for {asked['tokens']} tokens."
    )
    if asked["failed"]:
        sentence += f" Without an answer: {', '.join(f'{count} × {why}' for why, count in asked['failed'].items())}."
    return sentence + (f" It was asked no further: {asked['stopped']}." if asked["stopped"] else "")
