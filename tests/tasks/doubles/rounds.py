"""Rounds that the student practised, as their stages would leave them."""

import json
from pathlib import Path
from typing import Any

from tasks.tables import PROMPTS, ROLLOUTS, SCORES
from tests.tasks.doubles.tables import prompt, rollout, score, write_stage

WRONG = ("no", 0.0)
RIGHT = ("right", 1.0)


def write_round(folder: Path, answers: dict[str, list[tuple[str, float | None]]], **changes: Any) -> None:
    """`answers`: by problem, each text with its reward."""
    prompts = [
        prompt(name, group, **changes) | {"messages": json.dumps([{"role": "user", "content": name}])}
        for group, name in enumerate(answers)
    ]
    places = [
        (name, group, sample, *answer)
        for group, (name, own) in enumerate(answers.items())
        for sample, answer in enumerate(own)
    ]
    scores = [score(name, group, sample, reward) for name, group, sample, _, reward in places]
    texts = [rollout(name, group, sample, text) for name, group, sample, text, _ in places]
    write_stage(folder / "select_prompts", {"prompts": (PROMPTS, prompts)})
    write_stage(folder / "score", {"scores": (SCORES, scores)})
    write_stage(folder / "sample", {"rollouts": (ROLLOUTS, texts)})
