"""What the owner's day adds to a night: a reward model, and the day copy, from which the night may start."""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from conf.storage.home import NightError
from flows.run.context import CHANGED, Night, log
from flows.training.inputs import reward_model_of
from flows.training.quizzes import Quizzes
from flows.training.reward_model import rank_held_out
from models.hf.checkpoint import MergeError, learned, verify
from tasks.journal.tables import GENERATED
from tasks.monitoring.tracking import Tracking
from tasks.stage import Artifact, committed
from tasks.teaching.day_at_night import ask_again, choose_start, lessons_of_day, replay_day
from tasks.workers.worker import HoursOverError, WorkerDiedError

LESSON, MERGING = 2.0, 30.0  # expected seconds per lesson of the day, and for the merge
SHARE = 0.2  # the day copy may take at most this share of the night's remaining time


@dataclass
class OwnersDay:
    """What the owner's day contributes to a night: the reward model fitted to the owner's picks, and the day copy."""

    night: Night
    champion: Path
    quizzes: Quizzes
    journal: Artifact
    tracking: Tracking

    @cached_property
    def reward_model(self) -> Artifact:
        """The stage that fitted the reward model to the owner's picks, or that recorded why no model is usable."""
        return reward_model_of(self.night, self.journal, self.champion, self.tracking)

    @cached_property
    def champion_picks(self) -> Artifact | None:
        """The champion's ranking of the held-out picks, or None if no picks are held out or the ranking was skipped."""
        return rank_held_out(self.night, self.reward_model, "champion", self.champion)

    def student(self) -> Path:
        """Return the checkpoint that a night with `start_from: day` begins with: the day copy or the champion.

        The choice stays the same when the night resumes. Raises DamagedCheckpointError if the day copy has changed.
        """
        night = self.night
        if (chosen := committed(night.folder / "choose_start")) is None:
            if refused := self._make():
                night.note(refused)
            merged = committed(night.folder / "merge_day")
            day = None if refused or merged is None else self.quizzes.ask_if_possible("day", night.checkpoint(merged))
            chosen = night.run(
                choose_start,
                "choose_start",
                champion=self.quizzes.ask_if_possible("start", self.champion),
                day=day,
                champion_picks=self.champion_picks,
                day_picks=committed(night.folder / "picks" / "day"),
                alpha=night.config.exam.alpha,
                refused=refused,
            )
        merged = committed(night.folder / "merge_day")
        if merged is None or not chosen.read_json("start.json")["day"]:
            return self.champion
        verify(day := night.checkpoint(merged), CHANGED)
        return day

    def ask_again(self, candidate: Path) -> None:
        """Have the candidate answer the questions whose corrections it has learned and the champion has not.

        Only the report uses the answers. They are skipped if time runs out or the engine fails.
        """
        night = self.night
        new = {name for name in learned(candidate) - learned(self.champion) if not name.startswith(GENERATED)}
        try:
            night.run(
                ask_again,
                "ask_again",
                day=self.journal,
                lessons=tuple(sorted(new)),
                player=night.player(candidate, night.config.teach.max_answer_tokens),
            )
        except (NightError, WorkerDiedError, RuntimeError) as error:
            log.warning("the corrected questions were not asked again: %s", error)

    def _make(self) -> str:
        """Make the day copy and have it rank the held-out picks. Returns why there is no day copy, or an empty string.

        A failure never ends the night: if time or memory is short, or a child process dies, the copy is skipped.
        """
        night, config, home = self.night, self.night.config, self.night.home
        if committed(night.folder / "replay_day") is None:
            lessons = lessons_of_day(self.champion, self.journal, config, home.journal)
            if not lessons:
                return "Nothing was learned by day."
            needed, left = LESSON * len(lessons) + MERGING, night.hours.end - time.time()
            if needed > SHARE * left:
                return (
                    f"The day copy was not made: its {len(lessons)} lessons would take about {needed / 60:.0f} "
                    f"minutes, more than a fifth of the {max(left, 0) / 60:.0f} that are left."
                )
        try:
            replayed = night.run(
                replay_day,
                "replay_day",
                day=self.journal,
                champion=self.champion,
                config=config,
                teach=config.teach,
            )
            if (adapter := night.checkpoint(replayed)) == self.champion:
                return "The day copy has learned none of the day's lessons."
            day = night.merge("merge_day", adapter)
        except MergeError as error:
            return f"The day copy could not be merged: {error}."
        except (HoursOverError, WorkerDiedError, RuntimeError) as error:
            return f"The day copy was not made: {' '.join(str(error).split())[:200]}."
        rank_held_out(night, self.reward_model, "day", day)
        return ""
