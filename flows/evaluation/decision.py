"""The night's decision: the exam of its candidate, and what it comes to."""

from collections.abc import Mapping
from pathlib import Path

from flows.evaluation.run import Exam
from flows.run.budget import Division
from flows.run.context import Night
from flows.run.levels import level_news
from tasks.evaluation.decide import decide
from tasks.evaluation.sequential import successor_alpha
from tasks.evaluation.taste import compare_taste
from tasks.stage import Artifact


def decide_night(
    night: Night,
    students: Mapping[str, Path],
    first: Path | None,
    division: Division,
    picks: Mapping[str, Artifact],
    quizzes: Mapping[str, Artifact],
    unpromoted: int,
    severe: tuple[str, ...],
) -> tuple[Artifact, Mapping[str, Artifact]]:
    """Examine the candidate and decide. Returns the decision, and the exams by role.

    `students`: champion, start, distilled and candidate. `first`: the first student, where it is another than the
    champion. `picks`: rankings of the held-out picks by champion and candidate. `unpromoted`: nights in a row that made
    the start. `severe`: alarms.
    """
    config, champion, candidate = night.config, students["champion"], students["candidate"]
    alpha = successor_alpha(config.exam.alpha, unpromoted)
    taste = compare_taste(picks.get("champion"), picks.get("candidate"), alpha / 2)
    alpha /= 1 if taste is None else 2  # with enough held-out picks, they and the exam have half of it each
    exam = Exam(night, champion, first, division, alpha)
    examined = exam.sit(candidate, picks_passed=taste is not None and taste.p_value <= alpha)
    whole = ("distilled", "candidate") if config.exam.after_lessons else ()
    decision = night.run(
        decide,
        "decide",
        looks=examined.looks,
        planned=division.looks,
        exams=examined.exams,
        whole={role: exam.sit_whole(role, students[role]) for role in whole},
        quizzes=quizzes,
        digests={role: student.name for role, student in students.items()},
        exam=config.exam,
        alpha=alpha,
        seed=config.seed,
        unpromoted=unpromoted,
        champion_picks=picks.get("champion"),
        candidate_picks=picks.get("candidate"),
        severe=severe,
        news=level_news(config, night.home, night.date),
    )
    return decision, examined.exams
