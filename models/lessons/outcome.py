"""What became of a lesson by day: for the learner, the page, MLflow and the terminal alike."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LessonOutcome:
    """What became of a lesson. One that is not `learned` left the day copy as it was; `why`, in a sentence.

    `intended_nats`, `change_nats`: Σ over the answers' tokens of credit × change of log-probability. `kl`: KL
    divergence of the copy before from the copy after, mean over the tokens of the answers shown, nats. `day_kl`: of the
    champion from the copy, over the tokens of everyday answers. `halvings`: of the step. `guessed`, of a pick: whether
    the copy before it preferred the chosen answer; None if it preferred none. `seconds` that it took, where they were
    measured. Figures are None where the lesson was not tried.
    """

    learned: bool = False
    change_nats: float | None = None
    kl: float | None = None
    seconds: float | None = None
    guessed: bool | None = None
    why: str = ""
    day_kl: float | None = None
    intended_nats: float | None = None
    halvings: int = 0
