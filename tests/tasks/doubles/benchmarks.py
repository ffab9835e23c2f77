"""A benchmark that a user could have written."""

from collections.abc import Sequence

from rewards.verifier import Attempt, Problem, Score, Split


class Shouted:
    """A user's benchmark: the answer is the question's last word in capitals. The prompt is not the question."""

    name = "shouted"

    def __init__(self, source: str | None = None) -> None: ...

    def problems(self, split: Split) -> list[Problem]:
        return [Problem("shouted/owl", self.name, "Say owl", "OWL")]

    def kind(self, problem: Problem) -> str:
        return self.name

    def prompt(self, problem: Problem) -> str:
        return f"{problem.question}! Loudly."

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        right = [a.completion == a.problem.question.removeprefix("Say ").upper() for a in attempts]
        return [Score(float(each), "correct" if each else "wrong") for each in right]
