"""Checks after every round: alarms, and whether the learning goes on."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from conf.storage.durable import size_of
from conf.storage.layout import is_committed
from flows.run.context import Night, log
from tasks.evaluation.statistics import outcomes
from tasks.monitoring.alarm_log import AlarmLog
from tasks.monitoring.alarms import Alarm, bytes_of_a_round, disk_alarms, exam_alarms, kind_alarms
from tasks.monitoring.round_alarms import round_alarms
from tasks.monitoring.tracking import Tracking
from tasks.report.queries import exam_verdicts, solve_rates
from tasks.reward_model.overoptimization import learned_reward_hacked, unwatched
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table


class Monitor:
    """The figures of the rounds and quizzes so far, and the alarms that they raise."""

    def __init__(self, night: Night, tracking: Tracking, *, relative: bool = False) -> None:
        """`relative`: the learned reward is a judge's, which only compares the answers of a group."""
        self.night, self.relative = night, relative
        self.alarms = AlarmLog(night.folder, tracking)
        self.figures: list[dict[str, float]] = []
        self.quizzes: dict[int, tuple[int, int]] = {}  # by round: correct, graded
        self.rankings: dict[tuple[int, int], list[bool]] = {}  # by a block's first round, and round: see `rank_picks`

    def add_quiz(self, number: int, quiz: Artifact) -> float | None:
        """Add a quiz's result. Returns the share of its graded answers that is right; None where none was graded."""
        graded = outcomes(read_table(quiz.folder / "evaluations.parquet", EVALUATIONS)).dropna()
        self.quizzes[number] = round(graded.clip(0.0, 1.0).sum()), len(graded)
        return None if graded.empty else float(graded.mean())

    def add_ranking(self, first: int, number: int, ranking: Artifact) -> None:
        """Add how the student ranked the held-out picks after a round of the block that begins with round `first`.

        The ranking before the block's first round has the number of the round before it.
        """
        self.rankings[first, number] = ranking.read_json("ranking.json")["right"]
        if number < first and (why := unwatched(self.rankings[first, number])):
            log.warning("from round %d on %s", first, why)

    @property
    def hacked(self) -> Alarm | None:
        """The alarm that ends the use of the learned reward; None while it is sound."""
        return learned_reward_hacked(self.figures, self.rankings, relative=self.relative)

    def ends_learning(self, policies: Sequence[Path], state: Path) -> bool:
        """Raise the alarms of the rounds so far. True where a severe one forbids another round.

        `policies`: the rounds' checkpoints whose room the next ones take; `state`: the newest trainer state. The disk
        must have room for another such pair.
        """
        number = len(self.figures)
        alarms = round_alarms(self.figures, self.quizzes) + ([self.hacked] if self.hacked else [])
        more = number < self.night.config.rounds
        if more and not is_committed(self.night.round_folder(number + 1)):  # what is committed needs no room
            held = sum(map(size_of, (state.parent, *policies)))  # first: what is moved meanwhile is counted as held
            room = held + shutil.disk_usage(self.night.home.root).free
            alarms += disk_alarms(room, bytes_of_a_round(policies[-1], state), number)
        self.alarms.record(alarms)
        return any(alarm.round <= number for alarm in self.alarms.severe if alarm.round is not None)

    def finish(self) -> list[str]:
        """Raise the alarms that the whole night shows. Returns the sentences of all."""
        folder = self.night.folder
        self.alarms.record(exam_alarms(exam_verdicts(folder)) + kind_alarms(solve_rates(folder)))
        return self.alarms.sentences

    @property
    def severe(self) -> tuple[str, ...]:
        """Why nothing may be promoted."""
        return tuple(alarm.sentence for alarm in self.alarms.severe)
