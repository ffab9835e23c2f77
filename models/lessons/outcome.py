"""The outcome of a daytime lesson, in a form shared by the learner, the page, MLflow and the terminal."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LessonOutcome:
    """The outcome of a lesson. If it was not `learned`, the day copy is unchanged, and `why` gives the reason.

    `intended_nats`, `change_nats`: the intended and the measured change of Σ credit × log-probability over the answers'
    tokens. `kl`: KL(copy before ‖ copy after), averaged over the tokens of the answers shown, in nats. `day_kl`:
    KL(champion ‖ copy), averaged over the tokens of everyday answers. `halvings`: how often the step was halved.
    `guessed`: whether the copy already preferred the chosen answer of a pick; None if it had no preference. `seconds`:
    the duration, if measured. If a lesson was not tried, all metrics but `halvings` are None.
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
