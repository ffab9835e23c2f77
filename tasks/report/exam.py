"""What the report shows of the exam besides who won: format, length, pass@k, levels and subjects, the owner's picks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.evaluation.metrics import ExamFigures, night_figures, ranking_accuracies
from tasks.evaluation.statistics import Accuracy
from tasks.report.queries import WHO


@dataclass(frozen=True)
class ExamSheet:
    """The tables of an exam; `who` is as people read it, and what is not known of anyone is not there.

    `figures`: by part and who. `tries`: the k of all pass@k. `kinds`: accuracies by who, for each part's level or
    subject. `picks`: the share of the owner's held-out picks that each ranks first.
    """

    figures: Mapping[tuple[str, str], ExamFigures]
    tries: tuple[int, ...]
    kinds: Mapping[tuple[str, str], Mapping[str, Accuracy]]
    picks: Mapping[str, Accuracy]


def exam_sheet(night: Path) -> ExamSheet:
    """The sheet of a night, which is empty where no exam was sat."""
    found = {WHO[who]: parts for who, parts in night_figures(night).items()}
    names = dict.fromkeys(part for parts in found.values() for part in parts)
    figures = {(part, who): parts[part] for part in names for who, parts in found.items() if part in parts}
    kinds: dict[tuple[str, str], dict[str, Accuracy]] = {}
    for (part, who), own in figures.items():
        for name, accuracies in (("level", own.by_level), ("subject", own.by_subject)):
            for kind, accuracy in accuracies.items():
                kinds.setdefault((part, kind if name == "subject" else _level(kind)), {})[who] = accuracy
    tries = tuple(sorted({k for own in figures.values() for k in own.pass_at}))
    return ExamSheet(figures, tries, kinds, {WHO[who]: share for who, share in ranking_accuracies(night).items()})


def _level(kind: str) -> str:
    return f"level {kind}" if kind.isdecimal() else kind  # `3`, but `Level 3`
