"""The report's remarks on the journal, the worked solutions, the judge, the reward model and the day copy.

Each remark reports what a stage committed in the night's folder. A stage that did not run gets no remark.
"""

from pathlib import Path
from typing import Any

from conf.storage.layout import committed_json, ranking_path, rounds
from tasks.report.queries import read_table
from tasks.report.text import plural
from tasks.reward_model.overoptimization import unwatched

FIRST = 5  # number of refused lines shown
LONGEST = 200  # maximum characters of a reason, which may quote the line


def journal_faults(night: Path) -> dict[str, Any]:
    """Return the number of `refused` journal lines, and the `first` few, each with file, line and reason."""
    table = read_table(night / "freeze_journal", "quarantine")
    refused: list[Any] = [] if table is None else table.to_dict("records")
    first = [
        row | {"reason": row["reason"][:LONGEST] + "…" * (len(row["reason"]) > LONGEST)} for row in refused[:FIRST]
    ]
    return {"refused": len(refused), "first": first}


def remarks(night: Path) -> dict[str, Any]:
    """Return the variables of `remarks.html`: facts on worked solutions, teachers, the judge and the reward model."""
    refused = read_table(night / "import_traces", "quarantine")
    hits: list[Any] = []
    for folder in sorted([*night.glob("distill*"), *night.glob("self_distill*")]):  # two steps may find the same hit
        hits += [hit for hit in committed_json(folder, "contamination.json") or [] if hit not in hits]
    asked = [committed_json(folder, "asked.json") for folder in sorted(night.glob("ask_teacher*"))]
    fitted = committed_json(night / "fit_reward_model", "outcome.json")
    return {
        "refused_traces": [] if refused is None else refused.to_dict("records"),
        "contaminated": hits,
        "teachers": [answers for answers in asked if answers],
        "judge": committed_json(night / "examine_judge", "outcome.json"),
        "reward_model": fitted if fitted and fitted["reason"] != "" else None,
        "watched": _watched(night),
    }


def day_sentences(night: Path) -> list[str]:
    """Return sentences on what the day copy learned, whether the night began with it, and the corrections asked again.

    Empty if there was none of these.
    """
    replayed = committed_json(night / "replay_day", "day.json")
    start = committed_json(night / "choose_start", "start.json")
    sentences = []
    if replayed and replayed["learned"]:
        sentences.append(f"The day copy learned {replayed['learned']} of {plural(replayed['lessons'], 'lesson')}.")
        if start:
            begun = "The night began with it" if start["day"] else "The night did not begin with it"
            sentences.append(f"{begun}: {' '.join(start['reasons'])}")
    if again := asked_again(night):
        same = sum(row["same"] for row in again)
        sentences.append(f"Asked again, the candidate gives your answer to {same} of {len(again)} corrected questions.")
    return sentences


def asked_again(night: Path) -> list[dict[str, Any]]:
    """Return the corrections that the candidate was asked again: `question`, `correction`, its `answer`, `same` or not.

    Case and punctuation around words do not count.
    """
    rows = committed_json(night / "ask_again", "answers.json") or []
    return [row | {"same": _words(row["answer"]) == _words(row["correction"])} for row in rows]


def _words(text: str) -> list[str]:
    return [word.strip(".,;:!?\"'()*") for word in text.lower().split()]


def _watched(night: Path) -> dict[int, str | None]:
    """Map each block's first round to why over-optimization could not be noticed in that block, or None if it could."""
    starts = {
        number: committed_json(night / ranking_path(number, number - 1), "ranking.json") for number, _ in rounds(night)
    }
    return {number: unwatched(ranking["right"]) for number, ranking in starts.items() if ranking}
