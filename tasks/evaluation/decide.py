"""The decision: whether the candidate is significantly better than the champion, and no worse where guarded."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pandas as pd

from conf.sections.exam import ExamConfig
from tasks.evaluation import statistics
from tasks.evaluation.alpha_spending import level
from tasks.evaluation.english import compare_english, with_english
from tasks.evaluation.statistics import Comparison, Decision
from tasks.evaluation.taste import compare_taste, with_taste
from tasks.stage import Artifact, stage
from tasks.tables import EVALUATIONS, read_table


@stage()
def decide(
    folder: Path,
    *,
    champion: Artifact,
    distilled: Artifact,
    candidate: Artifact,
    exam: ExamConfig,
    seed: int,
    champion_picks: Artifact | None = None,
    candidate_picks: Artifact | None = None,
    severe: tuple[str, ...] = (),
    earlier_exams: int = 0,
    news: tuple[str, ...] = (),
) -> None:
    """Compare the three models on every part of the exam, and write `decision.json` with the reasons.

    After `severe` alarms (sentences) the champion stays, whatever the exam shows. `earlier_exams`: how many nights
    have decided on the same problems, for α spending. `news`: sentences that come before the reasons. `champion_picks`,
    `candidate_picks`: their rankings of the owner's held-out picks, which decide as a further target.
    """
    rows = {
        role: read_table(artifact.folder / "evaluations.parquet", EVALUATIONS)
        for role, artifact in {"champion": champion, "distilled": distilled, "candidate": candidate}.items()
    }
    tonight = level(exam.alpha, exam.alpha_spending, earlier_exams)
    taste = compare_taste(champion_picks, candidate_picks, tonight.alpha / (len(exam.targets) + 1))

    def comparison(before: str, after: str, part: str) -> Comparison:
        pair: list[pd.DataFrame] = [rows[role][rows[role].benchmark == part] for role in (before, after)]
        share = tonight.alpha / (len(exam.targets) + (taste is not None))  # what Holm asks of the smallest p-value
        return statistics.compare(part, pair[0], pair[1], samples=exam.bootstrap_samples, seed=seed, alpha=share)

    against = {part.name: comparison("champion", "candidate", part.name) for part in exam.parts}
    targets, guards = ([(against[part.name], part.margin) for part in parts] for parts in (exam.targets, exam.guards))
    decision = statistics.decide(targets, guards, tonight.alpha, taste and taste.p_value)
    english = None
    if exam.english_margin is not None:
        english = compare_english(champion, candidate)
        decision = with_english(decision, english, exam.english_margin)
    if severe:
        vetoes = [f"Nothing is promoted after a severe alarm. {sentence}" for sentence in severe]
        decision = Decision(False, (*vetoes, *decision.reasons))
    if taste is not None:
        decision = with_taste(decision, taste, [target.p_value for target, _ in targets], tonight.alpha)
    written: dict[str, Any] = {
        "promote": decision.promote,
        "reasons": [*news, *decision.reasons],
        "target": exam.target.name,
        "targets": [part.name for part in exam.targets],
        "alpha": tonight.alpha,
        "alpha_spending": exam.alpha_spending,
        "exams_sat": tonight.exams,
        "spent_alpha": tonight.spent,
        "false_promotions_a_year": tonight.false_promotions_a_year,
        "comparisons": {
            "candidate": {name: dataclasses.asdict(compared) for name, compared in against.items()},
            "distilled": {
                part.name: dataclasses.asdict(comparison("champion", "distilled", part.name)) for part in exam.parts
            },
        },
        "english": english and dataclasses.asdict(english),
        "taste": taste and dataclasses.asdict(taste),
        "growth": dataclasses.asdict(comparison("distilled", "candidate", exam.target.name)),
    }
    (folder / "decision.json").write_text(json.dumps(written, indent=1))
