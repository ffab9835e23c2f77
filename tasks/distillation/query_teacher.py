"""Query a teacher about problems that the student has tried, but solved neither tonight nor on recent nights."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from conf.sections.lessons import TeacherConfig
from conf.storage.log import log
from models.hf.teacher_client import Question, Replies, answered_before, ask
from rewards.data.contamination import exam_index
from tasks.distillation.attempts import PractisedProblem, earlier_rounds, practised_problems, rounds_of
from tasks.journal.tables import TRACES
from tasks.stage import Artifact, stage
from tasks.tables import write_table


@stage(resources=("night", "cache", "until"))
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
    cache: Path,
    until: float = math.inf,
) -> None:
    """Write the teacher's answers as traces, and counts and costs to `asked.json`. Log a warning if the teacher fails.

    `model`: the model's configured name, which identifies its earlier nights. `scores`: the scores of tonight's rounds
    before this lesson. `upto`: the number of the last of these rounds. `until`: when to stop querying, in seconds since
    the epoch. Answers are kept in `cache`, so neither a resumed night nor a later night pays for them again.
    """
    rounds = [*earlier_rounds(night.parent, date, model), *rounds_of(night, upto)]
    failed = unsolved(practised_problems(rounds, answers=False), exam_questions)
    problems = _select(failed, config, cache, date)
    questions = [(entry, question) for entry in problems for question in _questions(entry, config)]
    asked = [question for _, question in questions]
    replies = ask(asked, config.endpoint, cache, until, date) if asked else Replies([])
    rows = [
        entry.trace(answer, config.endpoint.model, "asked by night")
        for (entry, _), answer in zip(questions, replies.answers, strict=True)
        if answer is not None
    ]
    write_table(folder / "traces.parquet", TRACES, rows)
    summary = {"teacher": config.endpoint.model, "problems": len(problems), "questions": len(questions)}
    costs = {name: value for name, value in vars(replies).items() if name != "answers"}
    (folder / "asked.json").write_text(json.dumps(summary | {"answered": len(rows)} | costs))
    if replies.stopped:
        log.warning("stopped querying the teacher %s: %s", config.endpoint.model, replies.stopped)


def _select(
    failed: Sequence[PractisedProblem], config: TeacherConfig, cache: Path, date: str
) -> list[PractisedProblem]:
    """Return all problems whose answers are cached from earlier nights, and the first `config.problems` others."""
    selected, new = [], 0
    for entry in failed:
        questions = _questions(entry, config)
        cached = all(answered_before(question, config.endpoint, cache, date) for question in questions)
        if cached or new < config.problems:
            selected.append(entry)
            new += not cached
    return selected


def _questions(practised: PractisedProblem, config: TeacherConfig) -> list[Question]:
    turns = [{"role": turn["role"], "content": turn["content"]} for turn in practised.messages]
    return [Question(turns, number) for number in range(config.answers)]


def unsolved(practised: Sequence[PractisedProblem], exam_questions: Sequence[str]) -> list[PractisedProblem]:
    """Return the problems that no attempt solved and that match no exam question, the most attempted ones first."""
    exam = exam_index(tuple(exam_questions))
    failed = [
        entry
        for entry in practised
        if not entry.solved
        and not exam.match_any([entry.problem.question, *(turn["content"] for turn in entry.messages)])
    ]
    return sorted(failed, key=lambda entry: (-entry.tried, entry.problem.problem_id))
