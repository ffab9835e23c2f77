"""Two small environments: count down to 1, one number a turn; or wait for a number of turns, whatever is written."""

from collections.abc import Mapping
from typing import Any

from rewards.verifier import Problem, Split

State = dict[str, Any]
TAKES = {"train": range(0, 12, 2), "test": range(1, 12, 2)}


class Countdown:
    """Pays 1 for the next number; anything else costs half a point and changes nothing."""

    name = "countdown"

    def __init__(self, source: str | None = None) -> None:
        """`source`: as benchmarks of one's own have it; not used."""

    def problems(self, split: Split) -> list[Problem]:
        """Return the numbers to begin with, each several times."""
        return [
            Problem(f"countdown/{start}/{take}", self.name, f"Count down from {start}, take {take}.", "", str(start))
            for start in range(2, 8)
            for take in TAKES[split]
        ]

    def kind(self, problem: Problem) -> str:
        return f"from {problem.level}"

    def solutions(self) -> list[tuple[Problem, list[str]]]:
        """Return a perfect countdown from each start."""
        starts = self.problems("train")
        return [(problem, [str(n) for n in range(int(problem.level or 0), 0, -1)]) for problem in starts]

    def reset(self, problem: Problem) -> tuple[State, str]:
        start = int(problem.problem_id.split("/")[1])
        return {"start": start, "next": start}, f"Count down. Next: {start}"

    def step(self, state: State, text: str) -> tuple[State, str, float, bool, bool, Mapping[str, Any]]:
        """Count on where the number is right."""
        valid = text.strip() == str(state["next"])
        after = state | {"next": state["next"] - valid}
        parts = {"step": 1.0} if valid else {"mistake": -0.5}
        info = {"valid": valid, "parts": parts, "value": (state["start"] - after["next"]) / state["start"]}
        return after, f"Next: {after['next']}", sum(parts.values()), after["next"] == 0, False, info


class Patience:
    """Says how many turns are left."""

    name = "patience"

    def __init__(self, source: str | None = None) -> None:
        """`source`: as benchmarks of one's own have it; not used."""

    def problems(self, split: Split) -> list[Problem]:
        return [Problem(f"patience/{name}", self.name, f"Wait with {name}.", "") for name in ("a", "b")]

    def kind(self, problem: Problem) -> str:
        return "patience"

    def reset(self, problem: Problem) -> tuple[State, str]:
        return {"left": 9}, f"Wait {problem.problem_id[-1]}"

    def step(self, state: State, text: str) -> tuple[State, str, float, bool, bool, Mapping[str, Any]]:
        left = state["left"] - 1
        return {"left": left}, f"{left} left", float(len(text)), left == 0, False, {}
