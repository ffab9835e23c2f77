"""The lessons of worked solutions: from the journal, from files, from a teacher asked by night; and from itself."""

from pathlib import Path

from flows.night import Night
from tasks.distill import distill
from tasks.practice import rounds_of
from tasks.self_distill import own_answers
from tasks.stage import Artifact, committed
from tasks.teacher import ask_teacher
from tasks.traces import import_traces


def learn_traces(
    night: Night, day: Artifact, rounds: int, checkpoint: Path, exam_questions: tuple[str, ...], place: str = "distill"
) -> Path:
    """Distils all worked solutions that the night has, after so many rounds of tonight. Returns the checkpoint."""
    config, traces = night.config.distill, [day]
    if config.steps and config.files:
        traces.append(night.run(import_traces, "import_traces", files=config.files))
    if config.steps and config.teacher is not None:
        asked = night.run(
            ask_teacher,
            place.replace("distill", "ask_teacher"),
            config=config.teacher,
            exam_questions=exam_questions,
            scores=_scored(night, rounds),
            upto=rounds,
            date=night.date,
            night=night.folder,
            nights=night.home.nights,
            cache=night.home.teacher,
        )
        traces.append(asked)
    return _learn(night, traces, checkpoint, exam_questions, place)


def learn_own_answers(
    night: Night, rounds: int, checkpoint: Path, exam_questions: tuple[str, ...], place: str = "self_distill"
) -> Path:
    """Distils the student's right answers to hard problems, after so many rounds of tonight. Returns the checkpoint."""
    answers = night.run(
        own_answers,
        f"{place}_answers",
        scores=_scored(night, rounds),
        upto=rounds,
        per_problem=night.config.distill.traces_per_problem,
        date=night.date,
        night=night.folder,
        nights=night.home.nights,
    )
    return _learn(night, [answers], checkpoint, exam_questions, place)


def _scored(night: Night, rounds: int) -> tuple[Artifact, ...]:
    """What was scored in so many rounds of tonight."""
    scored = (committed(folder / "score") for folder in rounds_of(night.folder, rounds))
    return tuple(one for one in scored if one)


def _learn(night: Night, traces: list[Artifact], checkpoint: Path, exam_questions: tuple[str, ...], place: str) -> Path:
    config = night.config
    return night.made(
        distill,
        place,
        traces=tuple(traces),
        checkpoint=checkpoint,
        config=config.distill,
        trainer_config=config.trainer,
        student=config.student,
        sandbox=config.sandbox,
        exam_questions=exam_questions,
        max_tokens=config.engine.max_model_len,
        checkpoints=night.home.checkpoints,
        trainer=night.trainer,
    )
