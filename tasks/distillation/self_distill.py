"""Self-distillation by rejection sampling: train on the student's correct answers to problems that it mostly fails."""

from pathlib import Path

from tasks.distillation.attempts import earlier_rounds, practised_problems, rounds_of
from tasks.journal.tables import TRACES
from tasks.stage import Artifact, stage
from tasks.tables import write_table

HARD = 0.5  # a problem with a lower solve rate is hard


@stage(resources=("night", "nights"))
def own_answers(
    folder: Path,
    *,
    model: str,
    scores: tuple[Artifact, ...],
    upto: int,
    per_problem: int,
    date: str,
    night: Path,
    nights: Path,
) -> None:
    """Write a traces table of the student's correct answers to hard problems, tonight and on recent nights.

    `model`: the model's configured name, which identifies its earlier nights. `scores`: the scores of tonight's rounds
    before this lesson. `upto`: the number of the last of these rounds. Keeps the `per_problem` shortest different
    answers to each problem, because they have the fewest incidental details. This is rejection-sampling fine-tuning
    (Yuan et al. 2023, arXiv:2308.01825), which gains most from many different solutions, according to the paper.
    """
    rounds = [*earlier_rounds(nights, date, model), *rounds_of(night, upto)]
    hard = [entry for entry in practised_problems(rounds, answers=True) if 0 < entry.solved < HARD * entry.tried]
    rows = [
        entry.trace(response, "itself", "own answers")
        for entry in hard
        for response in sorted(set(entry.correct), key=lambda text: (len(text), text))[:per_problem]
    ]
    write_table(folder / "traces.parquet", TRACES, rows)
