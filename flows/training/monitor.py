"""What is looked at after every round, and whether the learning goes on."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from flows.run.context import Night, log
from tasks.layout import is_committed
from tasks.monitoring.alarm_log import AlarmLog
from tasks.monitoring.alarms import Alarm, exam_alarms, kind_alarms
from tasks.monitoring.disk_space import bytes_of_a_round, disk_alarms, size_of
from tasks.monitoring.round_alarms import round_alarms
from tasks.report.queries import kind_history, ungraded_answers
from tasks.reward_model.overoptimization import learned_reward_hacked, unwatched
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table
from tasks.tracking import Tracking


class NightWatch:
    """The figures of the rounds and quizzes so far, and the alarms that come of them."""

    def __init__(self, night: Night, tracking: Tracking) -> None:
        self.night = night
        self.book = AlarmLog(night.folder, tracking, night.config.alarms.command)
        self.figures: list[dict[str, float]] = []
        self.quizzes: dict[int, tuple[int, int]] = {}  # by round: correct, graded
        self.rankings: dict[tuple[int, int], list[bool]] = {}  # by a block's first round, and round: see `rank_picks`

    def take_quiz(self, number: int, found: Artifact) -> None:
        """Remembers what came of a quiz."""
        correct = read_table(found.folder / "evaluations.parquet", EVALUATIONS)["correct"].dropna()
        self.quizzes[number] = int(correct.sum()), len(correct)

    def take_ranking(self, first: int, number: int, found: Artifact) -> None:
        """Remembers how the student ranked the held-out picks after a round of the block that begins with `first`; as
        it begins, that is the round before.
        """
        self.rankings[first, number] = found.read_json("ranking.json")["right"]
        if number < first and (why := unwatched(self.rankings[first, number])):
            log.warning("from round %d on %s", first, why)

    @property
    def hacked(self) -> Alarm | None:
        """Why the learned reward is not used any more; None where nothing speaks against it."""
        return learned_reward_hacked(self.figures, self.rankings)

    def ends_learning(self, policies: Sequence[Path], state: Path) -> bool:
        """Raises the alarms of the rounds so far. True where a severe one forbids another round.

        `policies`: the rounds' checkpoints so far; `state`: the newest trainer state. The disk must have room for
        another such pair.
        """
        number = len(self.figures)
        found = round_alarms(self.figures, self.quizzes) + ([self.hacked] if self.hacked else [])
        if number < self.night.config.rounds and not is_committed(
            self.night.round(number + 1)
        ):  # what is committed needs no room
            held = sum(map(size_of, (state.parent, *policies)))  # first: what is moved meanwhile is counted as held
            room = held + shutil.disk_usage(self.night.home.root).free
            found += disk_alarms(room, bytes_of_a_round(policies[-1], state), number)
        self.book.record(found)
        return any(alarm.round <= number for alarm in self.book.severe if alarm.round is not None)

    def morning(self) -> list[str]:
        """Raises the alarms that the whole night shows. Returns the sentences of all."""
        folder = self.night.folder
        self.book.record(exam_alarms(ungraded_answers(folder)) + kind_alarms(kind_history(folder)))
        return self.book.sentences

    @property
    def severe(self) -> tuple[str, ...]:
        """Why nothing may be promoted."""
        return tuple(alarm.sentence for alarm in self.book.severe)
