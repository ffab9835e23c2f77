"""The night's lessons: worked solutions, the student's own answers, and the owner's feedback."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from conf.schema import NightConfig
from conf.sections.lessons import LessonConfig
from conf.storage.layout import rehearsal_path, teacher_path
from flows.run.budget import end_of_asking
from flows.run.context import Night
from models.lessons.pace import Pace
from tasks.distillation.attempts import rounds_of
from tasks.distillation.distill import distill
from tasks.distillation.import_traces import import_traces
from tasks.distillation.known import Answering
from tasks.distillation.query_teacher import ask_teacher
from tasks.distillation.reference_solutions import reference_solutions
from tasks.distillation.rehearsal import rehearsal
from tasks.distillation.self_distill import own_answers
from tasks.journal.tables import TRACES
from tasks.reward_model.preferences import openings_held_out
from tasks.stage import Artifact, Stage, committed
from tasks.tables import read_table
from tasks.training.feedback import corrections, feedback, picks, words

TABLE = "traces.parquet"
LESSONS = "lessons"  # the folder of the stages of the owner's feedback
OWN_ANSWERS_RATE = 5e-6  # much more ruins a student


def learn_traces(
    night: Night,
    day: Artifact,
    rounds: int,
    checkpoint: Path,
    exam_questions: tuple[str, ...],
    path: str = "distill",
    *,
    trained: bool = False,
    pace: Pace | None = None,
) -> Path:
    """Distil all worked solutions of the night. Returns the checkpoint.

    `rounds`: how many rounds of tonight came before; their scores choose what a teacher is asked. `trained`: whether an
    earlier night has made the champion; then it learns only what it fails, at a gentler rate. `pace`: the lesson's
    share of the night's hours; None: it takes all steps.
    """
    config, traces, started = night.config, [day], time.perf_counter()
    lesson, answering, rehearsed = config.distill, None, None
    if lesson.steps:
        traces += _further_traces(night, rounds, exam_questions, path)
        rehearsed = _rehearsed(night, traces, checkpoint, path)
    if trained:
        lesson = lesson.model_copy(update={"learning_rate": min(lesson.learning_rate, lesson.trained_student_rate)})
        answering = Answering(config.sampler, config.grpo.max_completion_tokens, night.engine)
    return night.learn(
        distill,
        path,
        checkpoint,
        exam_questions,
        traces=tuple(traces),
        unseen=openings_held_out(day.folder),
        drawn_by=_seed(night, path),
        config=lesson,
        sandbox=config.sandbox,
        benchmarks=config.benchmarks,
        rehearsed=rehearsed,
        answering=answering,
        pace=pace and pace.left(started),  # without what teacher and rehearsal took
    )


def _rehearsed(night: Night, traces: Sequence[Artifact], checkpoint: Path, path: str) -> Artifact | None:
    """Return the student's own answers to everyday prompts, where there is something to learn beside them."""
    config = night.config
    if not config.distill.rehearsal or all(read_table(one.folder / TABLE, TRACES).empty for one in traces):
        return None
    return night.run(
        rehearsal,
        rehearsal_path(path),
        count=round(config.distill.rehearsal * config.distill.steps * config.distill.batch_size),
        checkpoint=checkpoint,
        student=config.student,
        config=config.sampler,
        max_completion_tokens=config.grpo.max_completion_tokens,
        seed=config.seed,
        engine=night.engine,
    )


def _further_traces(night: Night, rounds: int, exam_questions: tuple[str, ...], path: str) -> Iterator[Artifact]:
    """Yield the traces of the configured files, of the benchmarks themselves, and of a teacher."""
    config, home = night.config.distill, night.home
    if config.files:
        yield night.run(import_traces, "import_traces", files=config.files)
    if config.reference_solutions:
        yield night.run(
            reference_solutions,
            "reference_solutions",
            sources=night.config.benchmarks,
            sandbox=night.config.sandbox,
            count=config.reference_solutions,
            seed=_seed(night, "reference_solutions"),
        )
    if config.teacher is not None:
        yield night.run(
            ask_teacher,
            teacher_path(path),
            config=config.teacher,
            exam_questions=exam_questions,
            model=night.config.name,
            scores=_scored(night, rounds),
            upto=rounds,
            date=night.date,
            night=night.folder,
            nights=home.nights,
            cache=home.teacher,
            until=end_of_asking(night.hours, night.config, night.folder, night.last),
        )


def learn_own_answers(
    night: Night,
    rounds: int,
    checkpoint: Path,
    exam_questions: tuple[str, ...],
    path: str = "self_distill",
    *,
    pace: Pace | None = None,
) -> Path:
    """Distil the student's correct answers to hard problems. Returns the checkpoint.

    `rounds`: how many rounds of tonight came before. `pace`: as that of `learn_traces`.
    """
    answers = night.run(
        own_answers,
        f"{path}_answers",
        model=night.config.name,
        scores=_scored(night, rounds),
        upto=rounds,
        per_problem=night.config.distill.traces_per_problem,
        date=night.date,
        night=night.folder,
        nights=night.home.nights,
    )
    return night.learn(
        distill,
        path,
        checkpoint,
        exam_questions,
        traces=(answers,),
        unseen=(),  # a benchmark's problem may be learned even where the owner asked it too
        drawn_by=_seed(night, path),
        config=night.config.distill.model_copy(update={"learning_rate": OWN_ANSWERS_RATE}),
        sandbox=night.config.sandbox,
        benchmarks=night.config.benchmarks,
        pace=pace,
    )


def learn_feedback(
    night: Night, day: Artifact, checkpoint: Path, exam_questions: tuple[str, ...], pace: Pace | None = None
) -> Path:
    """Learn from every channel that is switched on, in order. Returns the last checkpoint.

    `pace`: the seconds that all channels together may take; each one gets an even share of what is left.
    """
    started, on = time.perf_counter(), channels(night.config)
    for number, (channel, lesson) in enumerate(on):
        night.rest_engine()
        share = None if pace is None else pace.left(started).share(len(on) - number, channel.name)
        checkpoint = night.learn(
            channel, f"{LESSONS}/{channel.name}", checkpoint, exam_questions, day=day, pace=share, config=lesson
        )
    return checkpoint


def channels(config: NightConfig) -> list[tuple[Stage, LessonConfig]]:
    """Return the channels that are switched on, each with its configuration, in the order in which they are learned."""
    known = {channel.name: channel for channel in (corrections, words, feedback, picks)}
    return [(known[name], getattr(config.lessons, name)) for name in config.channels]


def _seed(night: Night, path: str) -> str:
    """Return the seed of the draw of examples; it differs from lesson to lesson."""
    return f"{night.config.seed} {night.date} {path}"


def _scored(night: Night, rounds: int) -> tuple[Artifact, ...]:
    """Return the scores of tonight's first `rounds` rounds."""
    scored = (committed(folder / "score") for folder in rounds_of(night.folder, rounds))
    return tuple(one for one in scored if one)
