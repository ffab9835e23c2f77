"""Where the night begins: with the champion, or with the owner's day copy, if that has earned it."""

import json
from pathlib import Path

from conf.sections.exam import ExamConfig
from tasks.evaluation import statistics
from tasks.evaluation.english import compare_english, with_english
from tasks.evaluation.statistics import Decision
from tasks.evaluation.taste import compare_taste, favours
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table


@stage()
def choose_start(
    folder: Path,
    *,
    champion: Artifact,
    day: Artifact | None,
    champion_picks: Artifact | None,
    day_picks: Artifact | None,
    exam: ExamConfig,
    seed: int,
    refused: str = "",
) -> None:
    """Compare the day copy with the champion, and write `start.json`: `day`, whether the night begins with it, and why.

    It must favour the owner's held-out picks more, by the exact one-sided paired test at the exam's α, and hold every
    guard's margin. `day` is None where it did not sit the exam; `refused`: a sentence on why there is no day copy.
    """
    decision = Decision(False, (refused or "It did not sit the exam.",))
    if day is not None and not refused:
        decision = _compare(champion, day, champion_picks, day_picks, exam, seed)
    (folder / "start.json").write_text(json.dumps({"day": decision.promote, "reasons": decision.reasons}))


def _compare(
    champion: Artifact,
    day: Artifact,
    champion_picks: Artifact | None,
    day_picks: Artifact | None,
    exam: ExamConfig,
    seed: int,
) -> Decision:
    if champion_picks is None or day_picks is None:
        return Decision(False, ("The held-out picks were not ranked.",))
    taste = compare_taste(champion_picks, day_picks, exam.alpha)
    if taste is None:
        return Decision(False, ("There are too few held-out picks to compare it with the champion.",))
    earned = taste.p_value <= exam.alpha
    ranks = f"Of your held-out picks, it {favours(taste)}{'' if earned else ': not enough'}."
    rows = [read_table(each.folder / "evaluations.parquet", EVALUATIONS) for each in (champion, day)]
    decision = Decision(earned, (ranks,))
    for part in exam.guards:
        before, after = (table[table.benchmark == part.name] for table in rows)
        guard = statistics.compare(part.name, before, after, samples=exam.bootstrap_samples, seed=seed)
        decision = statistics.with_guard(decision, guard, part.margin)
    if exam.english_margin is not None:
        decision = with_english(decision, compare_english(champion, day), exam.english_margin)
    return decision
