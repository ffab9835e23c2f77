"""The functions of the learner's process, which holds the day copy while the classroom is open."""

import gc
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from conf.schema import NightConfig
from conf.storage.journal import Entry, Preference, Words
from models.hf.checkpoint import keep, learned, new_draft, write_learned, write_lineage
from models.hf.hardware import release_gpu_memory
from models.lessons.outcome import LessonOutcome
from rewards.data import benchmarks
from rewards.data.contamination import exam_index
from tasks.teaching.lessons import Lesson

if TYPE_CHECKING:  # only the learner's process loads torch
    from tasks.teaching.day_learner import DayLearner

_learner: "DayLearner | None" = None
_questions: tuple[str, ...] = ()


def start(
    champion: Path,
    config: NightConfig,
    adapter: Path | None = None,
    lessons: Sequence[tuple[str, Sequence[Entry]]] = (),
) -> tuple[str, bool]:
    """Load the champion and make a day copy of it: a new one, or the saved `adapter`, which has learned `lessons`.

    Returns the day copy's digest, and whether it has learned the lessons; it has not if the adapter cannot be read.
    """
    global _learner, _questions
    from tasks.teaching.day_learner import DayLearner

    _learner = DayLearner(champion, config)
    _questions = tuple(
        problem.question for part in config.exam.parts for problem in benchmarks.exam_problems(part, config.sandbox)
    )
    found = adapter is not None and _learner.resume(adapter, lessons)
    return _learner.digest, found


def prepare(pick: Preference) -> None:
    """Compute what any pick among these answers needs first."""
    with suppress(ValueError):  # too long; learning the pick reports it
        _started().prepare(pick)


def learn(name: str, entries: Sequence[Entry]) -> tuple[LessonOutcome, str]:
    """Try to learn a lesson; one with an exam question is refused. Return the outcome and the day copy's digest."""
    learner = _started()
    try:
        if exam_index(_questions).match_any(_texts(entries[0])):
            raise ValueError("it asks a question of the exam, which nothing may learn")
        outcome = learner.learn(name, entries)
    except ValueError as error:
        outcome = LessonOutcome(why=str(error))
    return outcome, learner.digest


def forget(name: str) -> tuple[dict[str, LessonOutcome], str]:
    """Undo a lesson and learn the later ones again. Return the later lessons' outcomes by name, and the new digest."""
    return _started().forget(name), _started().digest


def preferred(shown: Preference) -> int:
    """Return which of the answers shown the owner would pick, as far as the lessons tell; 0 if they do not."""
    try:
        return _started().preferred(shown) or 0
    except (ValueError, RuntimeError):  # too long, or perhaps out of memory
        return 0


def greedy_answer(messages: Sequence[dict[str, str]], max_tokens: int) -> tuple[str, bool]:
    """Return the day copy's greedy answer to a conversation, and whether it is finished."""
    return _started().greedy_answer(messages, max_tokens)


def history(messages: Sequence[dict[str, str]], answer: str, finished: bool) -> list[tuple[str, int, float]]:
    """Return an answer's log-probabilities, as `DayLearner.history` does."""
    return _started().history(messages, answer, finished)


def logprob_under(
    checkpoint: Path, config: NightConfig, messages: Sequence[dict[str, str]], answer: str, finished: bool
) -> float:
    """Return an answer's log-probability (nats) under a checkpoint, which is loaded in fp32 and released again."""
    from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
    from models.lessons.day_copy import DayCopy

    student = config.student
    tokenizer = load_tokenizer(checkpoint, student.trust_remote_code)
    prompt, tokens = prompt_tokens(tokenizer, messages, student), answer_tokens(tokenizer, answer, finished)
    copy = DayCopy(checkpoint, config.teach, trust_remote_code=student.trust_remote_code)  # it has learned nothing
    return float(copy.logprobs(prompt, [tokens])[0].sum())


def save(folder: Path) -> str:
    """Write the day copy's adapter in peft's format, and return its digest."""
    from models.hf.lora import save_adapter

    save_adapter(_started().day.model, folder)
    return _started().digest


def keep_day_copy(
    champion: Path, config: NightConfig, lessons: Sequence[Lesson], checkpoints: Path
) -> tuple[Path | None, int]:
    """Teach a new day copy these lessons. Return the checkpoint of its adapter and the number of lessons learned.

    The checkpoint is None if no lesson was learned. Afterwards, the process no longer holds a day copy.
    """
    global _learner
    try:
        start(champion, config)
        taken = [lesson for lesson in lessons if learn(lesson.name, lesson.entries)[0].learned]
        if not taken:
            return None, 0
        draft = new_draft(checkpoints)
        _started().write(draft)
        write_lineage(draft, champion.name, base=champion.name)
        write_learned(draft, learned(champion).union(*(lesson.names for lesson in taken)))
        return keep(draft, checkpoints), len(taken)
    finally:
        _learner = None
        gc.collect()
        release_gpu_memory()


def _texts(entry: Entry) -> list[str]:
    """Return the texts of an entry: the words to read, or the messages of its conversation and the answers to it."""
    if isinstance(entry, Words):
        return [entry.text]
    answers = getattr(entry, "responses", []) + [getattr(entry, name, "") for name in ("response", "correction")]
    return [text for text in (*(message.content for message in entry.messages), *answers) if text]


def _started() -> "DayLearner":
    assert _learner is not None, "the learner was not started"
    return _learner
