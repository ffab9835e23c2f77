"""Options of earlier versions: what replaces each, for whoever still sets it."""

from typing import Any

REMOVED = {
    "distill.choice": "a lesson's solutions always come shuffled",
    "exam.further_targets": "an exam has one target; make the others guards",
    "exam.alpha_spending": "alpha is spent on the looks of one night's exam (docs/exam-and-decision.md)",
    "exam.vault": "guards are held against the first student as well",
    "lessons.examine": "quizzes come before and after each lesson; exam.after_lessons adds an exam for benchmarks",
    "reward_model.learning_curve": "fits to fewer picks only showed what more picks bring; there are none any more",
}


def without_removed(data: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration that an earlier version has frozen, without the options that are gone."""
    for option in REMOVED:
        section, _, name = option.partition(".")
        if isinstance(data.get(section), dict):
            data[section].pop(name, None)
    return data
