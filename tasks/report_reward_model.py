"""What the report says of the night's reward model: whether it serves and why, and what its judgement is made of."""

from collections.abc import Iterator, Mapping
from typing import Any


def reward_model_sentences(outcome: Mapping[str, Any] | None) -> list[str]:
    """`outcome.json` of the stage `fit_reward_model` in sentences; none where no such stage ran."""
    if outcome is None:
        return []
    return [_whether(outcome), *(_made_of(outcome) if "accuracy" in outcome else ())]


def _whether(outcome: Mapping[str, Any]) -> str:
    if not outcome["serves"]:
        return f"No reward model served ({outcome['picks']} picks): {outcome['reason']}."
    accuracy = outcome["accuracy"]
    return (
        f"A reward model served: of {outcome['held_out']} held-out picks (of {outcome['picks']}) it found "
        f"{accuracy['value']:.0%} (95 % interval {accuracy['low']:.0%} to {accuracy['high']:.0%}; "
        f"chance is {outcome['chance']:.0%})."
    )


def _made_of(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Length, calibration and learning curve, all on the held-out picks."""
    length, bins = outcome["length"], outcome["calibration"]
    yield (
        f"Of the held-out picks it puts the longest answer first in {length['longest_top']:.0%}, the owner in "
        f"{length['longest_alone']:.0%}; the shortest is the owner's in {length['shortest_alone']:.0%}."
    )
    if bins:
        sure = sum(each["n"] * each["confidence"] for each in bins) / sum(each["n"] for each in bins)
        error = outcome["expected_calibration_error"]
        yield f"Of its first choice it is {sure:.0%} sure on average; expected calibration error {error:.0%}."
    if len(outcome["learning_curve"]) > 1:
        steps = (f"{step['value']:.0%} after {step['picks']} picks" for step in outcome["learning_curve"])
        yield f"How it learns: {', '.join(steps)}."
