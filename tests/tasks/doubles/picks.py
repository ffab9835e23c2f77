"""The owner's picks as a frozen day has them, for tiny students, and rankings of them."""

import json
from pathlib import Path
from typing import Any

from conf.sections.lessons import RewardModelConfig
from models.lessons.preference_data import is_held_out
from tasks.stage import Artifact
from tests.models.support.tiny import CHARACTERS
from tests.models.support.tiny_picks import tiny_picks


def preference_rows(count: int) -> list[dict[str, Any]]:
    """Return rows of the preferences table: picks of the shortest of five answers."""
    rows = []
    for number, pick in enumerate(tiny_picks(count, seed=1)):
        content = f"{number} " + "".join(CHARACTERS[token - 2] for token in pick.prompt)
        responses = ["".join(CHARACTERS[token - 2] for token in answer[:-1]) for answer in pick.answers]
        messages = [{"role": "user", "content": content}]
        shown = {"messages": json.dumps(messages), "responses": json.dumps(responses), "policy": "?"}
        held_out = is_held_out(messages, RewardModelConfig().held_out_share)
        rows.append(shown | {"chosen": pick.chosen, "held_out": held_out})
    return rows


def ranking(folder: Path, right: list[bool], generated: int = 0, together: int = 1) -> Artifact:
    """A ranking of the owner's picks, after some generated ones that the candidate ranks right."""
    folder.mkdir(parents=True)
    found = {"right": [True] * generated + right, "generated": [True] * generated + [False] * len(right)}
    found |= {"margins": [float(first) for first in [*found["right"]]]}
    found |= {"openings": [str(number // together) for number in range(generated + len(right))]}
    (folder / "ranking.json").write_text(json.dumps(found))
    return Artifact(folder=folder, digest=folder.name)
