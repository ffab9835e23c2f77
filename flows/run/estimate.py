"""What a night's phases are expected to take, and how much of its hours each phase may take."""

import math
from dataclasses import dataclass

EXAM_SHARE, LESSONS_SHARE = 0.15, 0.5  # of a night's hours; of the time for lessons and rounds
FEW, LEAST = 10, 3  # rounds
FIXED = 90.0  # seconds for all but lessons, answers and updates: enrolment, imports, engine start-up, report
FIRST_LOOK, MODELS = 100, 2  # problems in the exam's first look, and how many models answer them
LONGEST = 7 * 24 * 60  # minutes


@dataclass(frozen=True)
class Estimate:
    """How many seconds each phase of a night takes on this machine.

    `sampling`, `update`: seconds per round. `answer`: seconds for one model to answer one exam problem. `step`: seconds
    per optimizer step of the worked-solutions lesson, including the sampling of its rehearsal. `steps`: the planned
    number of such steps. `quizzed`: the number of training problems answered in quizzes.
    """

    sampling: float
    update: float
    answer: float
    step: float
    steps: int
    quizzed: int

    @property
    def round(self) -> float:
        """Seconds per round."""
        return self.sampling + self.update

    @property
    def least(self) -> float:
        """Seconds that the shortest night takes: the fixed costs plus an exam of one look."""
        return FIXED + MODELS * FIRST_LOOK * self.answer

    def rounds_that_fit(self, minutes: float) -> int:
        """Estimate how many rounds fit into a night of `minutes` minutes besides its exam and lessons."""
        left = self._learning(minutes)
        rounds = left - min(self.steps * self.step, most_for_lessons(left, self.round))
        return max(0, math.floor(rounds / self.round))

    def steps_that_fit(self, minutes: float) -> int:
        """Estimate how many of the lesson's planned steps fit into a night of `minutes` minutes."""
        most = most_for_lessons(self._learning(minutes), self.round)
        return min(self.steps, max(0, math.floor(most / self.step)))

    def minutes_enough(self) -> int:
        """Return the whole minutes of the shortest night with time for the whole lesson and a round; at most a week."""

        def is_enough(minutes: int) -> bool:
            return self.rounds_that_fit(minutes) > 0 and self.steps_that_fit(minutes) == self.steps

        return next(filter(is_enough, range(1, LONGEST)), LONGEST)

    def _learning(self, minutes: float) -> float:
        """Return the seconds for lessons and rounds."""
        exam = max(MODELS * FIRST_LOOK * self.answer, EXAM_SHARE * 60 * minutes)
        return 60 * minutes - FIXED - exam - self.quizzed * self.answer


def most_for_lessons(learning: float, a_round: float | None) -> float:
    """Return how many of the `learning` seconds lessons may take. `a_round`: the seconds expected per round, if known.

    Half of them at least. A few rounds teach less than more steps of the lesson (docs/performance.md, measured on a
    slow CPU), so if fewer than ten would fit into the other half, lessons may take more, but leave time for three.
    """
    half = LESSONS_SHARE * learning
    return half if a_round is None else max(half, min(FEW * a_round, learning - LEAST * a_round))
