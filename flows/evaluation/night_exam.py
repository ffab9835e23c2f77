"""A night's exam: it compares candidate and champion in several looks, then checks the guards and decides."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conf.storage.layout import MANIFEST
from flows.run.budget import LATE, Division
from flows.run.context import Night
from models.hf.checkpoint import is_intact
from rewards.data.benchmarks import exam_problems
from tasks.evaluation.answering import count_stored
from tasks.evaluation.decide import decide
from tasks.evaluation.english import mean_nats
from tasks.evaluation.evaluate import LOOK, evaluate, look
from tasks.evaluation.metrics import as_metrics, exam_figures
from tasks.evaluation.sequential import successor_alpha
from tasks.evaluation.stored_answers import versions
from tasks.evaluation.taste import compare_taste
from tasks.monitoring.tracking import Tracking
from tasks.registry.mlflow_registry import Version
from tasks.rollouts.verified import Player
from tasks.stage import Artifact

SLACK = LATE / 10  # seconds that a look may run past the night's hours, because the time for it is only estimated


@dataclass(frozen=True)
class Examined:
    """An exam's outcome. `exams`: each model's answers, by role (champion, candidate and, for the guards, first)."""

    looks: tuple[Artifact, ...]
    exams: Mapping[str, Artifact]


@dataclass
class Exam:
    """Compares a candidate with the champion. `first`: the first student, or None if the champion is the first."""

    night: Night
    champion: Path
    first: Path | None
    division: Division
    alpha: float

    def sit(self, candidate: Path, picks_passed: bool) -> Examined:
        """Test the candidate on the target until a look decides, and on the guards if it is better or `picks_passed`.

        The exam also ends if the night's hours leave no time for the next look. The first look always takes place.
        """
        looks: list[Artifact] = []
        for problems in self.division.looks:
            if looks and not self._fits(looks, problems, candidate):
                self.night.note(f"The exam ended after {self.division.looks[len(looks) - 1]} problems: time ran out.")
                break
            looks.append(self._look(looks, problems, candidate))
            if looks[-1].read_json(LOOK)["verdict"] != "undecided":
                break
        last = looks[-1].read_json(LOOK)
        passed = last["verdict"] == "better" or picks_passed
        models = {"champion": self.champion, "candidate": candidate}
        english = self.night.config.exam.english_margin is not None and (passed or last["difference"] > 0)
        exams = {
            role: self._evaluate(role, model, last["problems"], looks, guards=passed, english=english)
            for role, model in models.items()
        }
        if passed and self.first is not None and (self.night.config.exam.guards or english):
            exams["first"] = self._evaluate("first", self.first, 0, looks, guards=True, english=english)
        return Examined(tuple(looks), exams)

    def sit_whole(self, role: str, checkpoint: Path) -> Artifact:
        """Test a checkpoint on all problems of the target, for benchmarks (see the setting `exam.after_lessons`)."""
        return self._evaluate(f"whole-{role}", checkpoint, None)

    @property
    def _common(self) -> dict[str, Any]:
        return {"versions": tuple(versions().values()), "order": self._order}

    @property
    def _order(self) -> str:
        return f"{self.night.config.seed} {self.night.date}"

    def _player(self, checkpoint: Path) -> Player:
        return self.night.player(checkpoint, self.night.config.exam.max_completion_tokens)

    def _look(self, earlier: Sequence[Artifact], problems: int, candidate: Path) -> Artifact:
        return self.night.run(
            look,
            f"exam/look-{len(earlier) + 1}",
            after=earlier,
            part=self.night.config.exam.target,
            problems=problems,
            looks=self.division.looks,
            alpha=self.alpha,
            champion=self._player(self.champion),
            candidate=self._player(candidate),
            **self._common,
        )

    def _evaluate(
        self,
        role: str,
        checkpoint: Path,
        first: int | None,
        looks: Sequence[Artifact] = (),
        *,
        guards: bool = False,
        english: bool = False,
    ) -> Artifact:
        exam = self.night.config.exam
        return self.night.run(
            evaluate,
            f"evaluate/{role}",
            after=looks,
            parts=exam.parts if guards else (exam.target,),
            player=self._player(checkpoint),
            first=first,
            english=english,
            **self._common,
        )

    def _fits(self, looks: Sequence[Artifact], problems: int, candidate: Path) -> bool:
        """Return whether the next look is already committed, or is expected to end within the night's hours.

        Only answers that are not stored take time: most of the champion's may be, from earlier nights.
        """
        hours, target, sandbox = self.night.hours, self.night.config.exam.target, self.night.config.sandbox
        if math.isinf(hours.end) or (self.night.folder / f"exam/look-{len(looks) + 1}" / MANIFEST).exists():
            return True
        answered = sum(each.figure("answered") or 0.0 for each in looks)
        seconds = sum(each.figure("seconds_answering") or 0.0 for each in looks)
        new = exam_problems(target, sandbox, self._order)[self.division.looks[len(looks) - 1] : problems]
        players = map(self._player, (self.champion, candidate))
        missing = sum(len(new) - count_stored(each, target, new, sandbox, self.night.home.exams) for each in players)
        return time.time() + missing * seconds / max(answered, 1.0) <= hours.end + SLACK


def decide_night(
    night: Night,
    students: Mapping[str, Path],
    first: Path | None,
    division: Division,
    picks: tuple[Artifact | None, Artifact | None],
    quizzes: Mapping[str, Artifact],
    unpromoted: int,
    severe: tuple[str, ...],
) -> tuple[Artifact, Mapping[str, Artifact]]:
    """Examine the candidate and decide whether to promote it. Returns the decision, and the exams by role.

    `students`: the champion, start, distilled and candidate checkpoints, by role. `first`: the first student, or None
    if it is the champion. `picks`: how champion and candidate ranked the held-out picks. `unpromoted`: how many nights
    in a row without promotion led to the starting checkpoint. `severe`: the sentences of severe alarms.
    """
    config, champion, candidate = night.config, students["champion"], students["candidate"]
    chosen = config.start_from == "day" and students["start"] != champion  # by the same picks, or the same luck
    alpha = successor_alpha(config.exam.alpha, max(unpromoted, chosen))
    taste = compare_taste(*picks, alpha / 2)
    alpha /= 1 if taste is None else 2  # with enough held-out picks, picks and exam get half of alpha each
    exam = Exam(night, champion, first, division, alpha)
    examined = exam.sit(candidate, picks_passed=taste is not None and taste.p_value <= alpha)
    whole = ("distilled", "candidate") if config.exam.after_lessons else ()
    decision = night.run(
        decide,
        "decide",
        looks=examined.looks,
        planned=division.looks,
        exams=examined.exams,
        whole={role: exam.sit_whole(role, students[role]) for role in whole},
        quizzes=quizzes,
        digests={role: student.name for role, student in students.items()},
        exam=config.exam,
        alpha=alpha,
        seed=config.seed,
        unpromoted=unpromoted,
        champion_picks=taste and picks[0],
        candidate_picks=taste and picks[1],
        severe=severe,
    )
    return decision, examined.exams


def first_student(night: Night, versions: Sequence[Version], champion: Path) -> Path | None:
    """Return the oldest intact registered student, or None if no student is intact or the oldest is the champion."""
    intact = (version for version in versions if is_intact(night.home.checkpoints / version.digest))
    if (first := next(intact, None)) is None or first.digest == champion.name:
        return None
    if first is not versions[0]:
        night.note(
            f"The first student ({versions[0].digest}) is missing or damaged: guards are held against version "
            f"{first.version} instead."
        )
    return night.home.checkpoints / first.digest


def log_exams(tracking: Tracking, exams: Mapping[str, Artifact]) -> None:
    """Log the exams' metrics to MLflow. The step is the model's position in `exams`."""
    for step, exam in enumerate(exams.values()):
        nats = mean_nats(exam.folder)
        english = {} if nats is None else {"exam/english/nats": nats}
        tracking.log(as_metrics(exam_figures(exam.folder)) | english, step)
