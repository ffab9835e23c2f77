"""Asking a teacher by night, for exactly what the student never solved tonight and on recent nights."""

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path

from conf.sections.lessons import TeacherConfig
from models.hf.teacher_client import Asked, Question, answered_before, ask
from rewards.contamination import Contamination, exam_index
from tasks.distillation.attempts import Practice, earlier_rounds, practised, rounds_of
from tasks.stage import Artifact, stage
from tasks.tables import TRACES, write_table

log = logging.getLogger("nightschool")


@stage(resources=("night", "nights", "cache", "until"))
def ask_teacher(
    folder: Path,
    *,
    config: TeacherConfig,
    exam_questions: tuple[str, ...],
    model: str,
    scores: tuple[Artifact, ...],
    upto: int,
    date: str,
    night: Path,
    nights: Path,
    cache: Path,
    until: float = math.inf,
) -> None:
    """Writes the teacher's answers as traces, and what came of asking (`asked.json`); whatever the teacher does.

    `model`: the nights of this name are the student's. `scores`: of tonight's rounds before this lesson, `upto` the
    number of the last one. What the teacher answered is neither asked nor paid for again: not by this night when it is
    resumed, nor by later ones, which have it besides. `until`: seconds since the epoch at which the night needs the
    time for something else.
    """
    rounds = [*earlier_rounds(nights, date, model), *rounds_of(night, upto)]
    problems = _chosen(unsolved(practised(rounds, answers=False), exam_questions), config, cache, date)
    questions = [(practice, question) for practice in problems for question in _questions(practice, config)]
    found = ask([question for _, question in questions], config, cache, until, date) if questions else Asked([])
    rows = [
        {
            "messages": json.dumps(practice.messages),
            "response": answer,
            "teacher": config.model,
            "benchmark": practice.problem.benchmark,
            "truth": practice.problem.truth,
            "source": "asked by night",
        }
        for (practice, _), answer in zip(questions, found.answers, strict=True)
        if answer is not None
    ]
    write_table(folder / "traces.parquet", TRACES, rows)
    outcome = {
        "teacher": config.model,
        "problems": len(problems),
        "questions": len(questions),
        "asked": found.asked,
        "cached": found.cached,
        "answered": len(rows),
        "failed": dict(found.failed),
        "stopped": found.stopped,
        "tokens": found.tokens,
        "usd": round(found.usd, 6),
    }
    (folder / "asked.json").write_text(json.dumps(outcome))
    if found.stopped:
        log.warning("the teacher %s was not asked any further: %s", config.model, found.stopped)


def _chosen(failed: Sequence[Practice], config: TeacherConfig, cache: Path, date: str) -> list[Practice]:
    """The problems that an earlier night was told all answers to, and as many others as a night may ask about."""
    known = [all(answered_before(one, config, cache, date) for one in _questions(each, config)) for each in failed]
    new = [practice for practice, told in zip(failed, known, strict=True) if not told][: config.problems]
    return [practice for practice, told in zip(failed, known, strict=True) if told or practice in new]


def _questions(practice: Practice, config: TeacherConfig) -> list[Question]:
    asked = tuple((turn["role"], turn["content"]) for turn in practice.messages)
    return [Question(asked, number) for number in range(config.answers)]


def unsolved(practised: Sequence[Practice], exam_questions: Sequence[str]) -> list[Practice]:
    """The problems that no try solved, those tried most often first; none that the exam asks."""
    exam = exam_index(tuple(exam_questions))
    failed = [one for one in practised if not one.solved and not _is_asked(one, exam)]
    return sorted(failed, key=lambda one: (-one.tried, one.problem.problem_id))


def _is_asked(practice: Practice, exam: Contamination) -> bool:
    asked = [practice.problem.question, *(turn["content"] for turn in practice.messages)]
    return exam.match_any(asked) is not None
