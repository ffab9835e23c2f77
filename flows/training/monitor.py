"""After every round, raises alarms and decides whether the night goes on learning."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from conf.storage.durable import size_of
from conf.storage.layout import is_committed
from flows.run.context import Night, log
from tasks.evaluation.statistics import outcomes
from tasks.monitoring.alarms import Alarm, bytes_of_a_round, disk_alarms, exam_alarms, kind_alarms
from tasks.monitoring.notify import AlarmLog
from tasks.monitoring.round_alarms import round_alarms
from tasks.monitoring.tracking import Tracking
from tasks.report.queries import exam_verdicts, solve_rates
from tasks.reward_model.overoptimization import learned_reward_hacked, unwatched
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table


class Monitor:
    """The metrics of the rounds and quizzes so far, and the alarms that they raise."""

    def __init__(self, night: Night, tracking: Tracking, *, relative: bool = False) -> None:
        """`relative`: whether the learned reward comes from a judge, which only compares answers within a group."""
        self.night, self.relative = night, relative
        self.alarms = AlarmLog(night.folder, tracking)
        self.figures: list[dict[str, float]] = []
        self.quizzes: dict[int, tuple[int, int]] = {}  # by round: (correct answers, graded answers)
        self.rankings: dict[tuple[int, int], list[bool]] = {}  # by (block's first round, round); see `rank_picks`

    def add_quiz(self, number: int, quiz: Artifact) -> float | None:
        """Add the quiz after round `number`. Returns its accuracy over graded answers, or None if there are none."""
        graded = outcomes(read_table(quiz.folder / "evaluations.parquet", EVALUATIONS)).dropna()
        self.quizzes[number] = round(graded.clip(0.0, 1.0).sum()), len(graded)
        return None if graded.empty else float(graded.mean())

    def add_ranking(self, first: int, number: int, ranking: Artifact) -> None:
        """Add the student's ranking of the held-out picks after round `number` of a block whose first round is `first`.

        For the ranking before the block, `number` is `first` - 1.
        """
        self.rankings[first, number] = ranking.read_json("ranking.json")["right"]
        if number < first and (why := unwatched(self.rankings[first, number])):
            log.warning("from round %d on %s", first, why)

    @property
    def hacked(self) -> Alarm | None:
        """The over-optimization alarm, which ends the use of the learned reward, or None if it has not been raised."""
        return learned_reward_hacked(self.figures, self.rankings, relative=self.relative)

    def ends_learning(self, policies: Sequence[Path], state: Path) -> bool:
        """Raise the alarms of the rounds so far. Returns True if a severe alarm forbids another round.

        `policies`: the checkpoints that later rounds will replace on disk. `state`: the newest trainer state.
        A severe alarm is raised if the disk has no room for one more checkpoint and one more state.
        """
        number = len(self.figures)
        alarms = round_alarms(self.figures, self.quizzes) + ([self.hacked] if self.hacked else [])
        more = number < self.night.config.rounds
        if more and not is_committed(self.night.round_folder(number + 1)):  # a committed round needs no space
            held = sum(map(size_of, (state.parent, *policies)))  # first, so that files moved meanwhile count as held
            room = held + shutil.disk_usage(self.night.home.root).free
            alarms += disk_alarms(room, bytes_of_a_round(policies[-1], state), number)
        self.alarms.record(alarms)
        return any(alarm.round <= number for alarm in self.alarms.severe if alarm.round is not None)

    def finish(self) -> list[str]:
        """Raise the alarms that depend on the whole night. Returns the sentences of all alarms."""
        folder = self.night.folder
        self.alarms.record(exam_alarms(exam_verdicts(folder)) + kind_alarms(solve_rates(folder)))
        return self.alarms.sentences

    @property
    def severe(self) -> tuple[str, ...]:
        """The sentences of the severe alarms, each of which forbids promotion."""
        return tuple(alarm.sentence for alarm in self.alarms.severe)
