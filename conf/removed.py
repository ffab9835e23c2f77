"""Options of earlier versions: what replaces each, for whoever still sets it."""

from typing import Any

REMOVED = {
    "grpo.temperature": "training samples from the policy itself",
    "grpo.top_p": "training samples from the policy itself",
    "distill.choice": "a lesson's solutions always come shuffled",
    "exam.further_targets": "an exam has one target; make the others guards",
    "exam.alpha_spending": "alpha is spent on the looks of one night's exam (docs/exam-and-decision.md)",
    "exam.vault": "guards are held against the first student as well",
    "lessons.examine": "quizzes come before and after each lesson; exam.after_lessons adds an exam for benchmarks",
    "reward_model.learning_curve": "fits to fewer picks only showed what more picks bring; there are none any more",
} | {
    f"{endpoint}.{name}": "budget_tokens limits what an endpoint may cost"
    for endpoint in ("distill.teacher", "judge")
    for name in ("budget_usd", "usd_per_million_prompt_tokens", "usd_per_million_answer_tokens")
}


def without_removed(data: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration that an earlier version has frozen, without the options that are gone."""
    for option in REMOVED:
        *sections, name = option.split(".")
        section: Any = data
        for key in sections:
            section = section.get(key) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section.pop(name, None)
    return data
