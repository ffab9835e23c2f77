"""An environment that lasts a fixed number of turns, whatever is written."""

from typing import Any

from rewards.verifier import Problem, Split


class Patience:
    """Says how many turns are left."""

    name = "patience"

    def __init__(self, source: str | None = None) -> None:
        """`source`: as benchmarks of one's own have it; not used."""

    def problems(self, split: Split) -> list[Problem]:
        return [Problem(f"patience/{name}", self.name, f"Wait with {name}.", "") for name in ("a", "b")]

    def kind(self, problem: Problem) -> str:
        return "patience"

    def reset(self, problem: Problem) -> tuple[dict[str, Any], str]:
        return {"left": 9}, f"Wait {problem.problem_id[-1]}"

    def step(self, state: dict[str, Any], text: str) -> tuple[dict[str, Any], str, float, bool, bool, dict[str, Any]]:
        left = state["left"] - 1
        return {"left": left}, f"{left} left", float(len(text)), left == 0, False, {}
