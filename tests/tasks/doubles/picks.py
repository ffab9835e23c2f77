"""The owner's picks as a frozen day has them, for tiny students."""

import json
from typing import Any

from tests.models.support.tiny import CHARACTERS
from tests.models.support.tiny_picks import tiny_picks


def preference_rows(count: int) -> list[dict[str, Any]]:
    """Return rows of the preferences table: picks of the shortest of five answers."""
    rows = []
    for number, pick in enumerate(tiny_picks(count, seed=1)):
        content = f"{number} " + "".join(CHARACTERS[token - 2] for token in pick.prompt)
        responses = ["".join(CHARACTERS[token - 2] for token in answer[:-1]) for answer in pick.answers]
        messages = json.dumps([{"role": "user", "content": content}])
        rows.append({"messages": messages, "responses": json.dumps(responses), "chosen": pick.chosen, "policy": "?"})
    return rows
