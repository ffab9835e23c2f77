"""A colony whose ants can neither leave trails nor signal."""

from typing import Any

from rewards.environment import State
from rewards.environments.ants import RULES, Ants, parse

SHARED = ("DEPOSIT", "REINFORCE", "SIGNAL")


class SilentColony(Ants):
    """Three ants of tier 1, for whom trails and signals are invalid actions. `source` is unused."""

    name = "silent-ants"

    def __init__(self, source: str | None = None) -> None:
        super().__init__(("1",), ants=3)

    def step(self, state: State, text: str) -> tuple[State, str, float, bool, bool, dict[str, Any]]:
        """Take the acting ant's turn, without the actions that ants share."""
        shared = any(name in SHARED for name, _ in parse(text) or [])
        return super().step(state, "" if shared else text)

    def _rules(self, state: State) -> str:
        lines = super()._rules(state)
        begin, end = RULES.index("ACT: DEPOSIT"), RULES.index("ACT: REMEMBER")
        return lines.replace(RULES[begin:end], "")
