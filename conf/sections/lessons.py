"""What a night trains on: the day's traces, picks, corrections, feedback and words, and a teacher's answers."""

from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from conf.redact import ENDPOINT, refuse_password
from conf.sections.benchmark import BenchmarkName
from conf.sections.section import NotInIdentity, Positive, Section, Share, checked

EndpointUrl = Annotated[str, checked(partial(refuse_password, instead=ENDPOINT))]
Rate = Annotated[float, Field(gt=0)]


class DayConfig(Section):
    """Generated lessons in addition to the journal's, for the starter night, which has no owner yet.

    They are only for the original student. After a promotion, the generated picks still serve to judge, but only
    worked solutions of a new level (`exam.next_level_at`) are learned.
    """

    generated_traces: Annotated[int, Field(ge=0)] = Field(default=0, description="worked solutions")
    generated_preferences: Annotated[int, Field(ge=0)] = Field(default=0, description="picks of one answer in five")
    generated_corrections: Annotated[int, Field(ge=0)] = Field(default=0, description="corrected answers")
    generated_feedback: Annotated[int, Field(ge=0)] = Field(default=0, description="rated answers")
    generated_words: Annotated[int, Field(ge=0)] = Field(default=0, description="pieces of text to read")


class TraceFile(Section):
    """Worked solutions in a file or a hub dataset, in a common format; see docs/journal.md."""

    source: str = Field(description="a JSONL or Parquet file, or a hub id")
    benchmark: BenchmarkName | None = Field(
        default=None, description="benchmark of the solved problems, if a row names none; null: they cannot be verified"
    )
    teacher: str = Field(default="file", description="who wrote the solutions")


class EndpointConfig(Section):
    """Another model behind an OpenAI-compatible endpoint, and limits on its use.

    The API key comes from NIGHTSCHOOL_TEACHER_KEY or NIGHTSCHOOL_JUDGE_KEY and is never written to disk.
    """

    base_url: NotInIdentity[EndpointUrl] = Field(description='for example "http://127.0.0.1:8000/v1"')
    model: str = Field(description="the model's name at the endpoint")
    max_tokens: Positive = Field(default=512, description="maximum tokens per answer")
    budget_tokens: Positive = Field(default=200_000, description="tokens of prompts and answers per night")
    budget_minutes: Rate = Field(default=20.0, description="minutes after which a lesson sends no more requests")


class TeacherConfig(Section):
    """A better model, queried for problems that the student failed."""

    endpoint: EndpointConfig
    problems: Positive = Field(default=64, description="maximum problems per night")
    answers: Positive = Field(default=2, description="answers requested per problem")


class JudgeConfig(Section):
    """A model that ranks the answers of a group, in place of a reward model; see docs/judge.md."""

    endpoint: EndpointConfig
    picks: Positive = Field(default=100, description="maximum held-out picks to test the judge on")


class DistillConfig(Section):
    """Supervised training on worked solutions."""

    steps: Annotated[int, Field(ge=0)] = Field(default=12, description="maximum optimizer steps; 0: skip the stage")
    max_epochs: Positive = Field(default=4, description="maximum passes over the traces; few traces give fewer steps")
    batch_size: Positive = Field(default=16, description="traces per step")
    learning_rate: Rate = Field(default=2e-5, description="learning rate after a warm-up of two steps")
    trained_student_rate: Rate = Field(
        default=1e-5, description="upper limit of the learning rate once an earlier night has produced the champion"
    )
    schedule: Literal["constant", "linear"] = Field(
        default="constant", description="learning rate after warm-up; linear: it falls to 0 over the lesson"
    )
    files: tuple[TraceFile, ...] = Field(default=(), description="worked solutions to add to the journal's")
    reference_solutions: Annotated[int, Field(ge=0)] = Field(
        default=0, description="the benchmarks' own solutions of training problems, this many drawn anew each night"
    )
    rehearsal: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="share of a lesson that is the student's own answers to everyday prompts, to reduce forgetting",
    )
    kept_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="share of the lesson's change to keep: the weights after it are averaged with those before it, "
        "to reduce forgetting (WiSE-FT, arXiv 2109.01903)",
    )
    traces_per_problem: Positive = Field(default=4, description="maximum solutions to learn per problem")
    teacher: TeacherConfig | None = Field(default=None, description="queried during the night; null: no teacher")


class RewardModelConfig(Section):
    """The reward model, fitted to the owner's picks; see docs/reward-model.md."""

    min_picks: Positive = Field(default=30, description="with fewer picks, no reward model is fitted")
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25, description="share of the owner's conversations held out to judge the fit"
    )
    epochs: Positive = Field(default=3, description="passes over the picks")
    learning_rate: Rate = Field(default=2e-5, description="the backbone's; the scalar head's is 50 times as high")


class LearnedRewardConfig(Section):
    """How the learned reward counts in GRPO while it is in use."""

    owner_share: Share = Field(default=0.25, description="share of a round's prompts that are the owner's own")
    weight: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="weight of the standardised learned reward on the owner's prompts"
    )
    tie_breaker: Annotated[float, Field(ge=0, le=0.1)] = Field(
        default=0.05, description="most that the learned reward can add to or subtract from a verified reward"
    )


Epochs = Annotated[int, Field(ge=0)]
EPOCHS = "passes over the lines; 0: it is not learned"
LINES_A_STEP = 8  # the batch size of corrections, words and feedback


class CorrectionsConfig(Section):
    """Supervised training on corrected answers."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=1e-5, description="learning rate")
    epochs: Epochs = Field(default=2, description=EPOCHS)


class WordsConfig(Section):
    """Continued pretraining on free text."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=2e-6, description="learning rate")
    epochs: Epochs = Field(default=1, description=EPOCHS)


class FeedbackConfig(Section):
    """KTO (arXiv 2402.01306) on rated answers: the sign of the value counts, not its size."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=5e-6, description="learning rate")
    epochs: Epochs = Field(default=1, description=EPOCHS)


class PicksConfig(Section):
    """Direct learning from picks, without a reward model; `preference_learning` switches it on."""

    method: Literal["dpo", "best_of_n"] = Field(
        default="dpo", description="DPO (arXiv 2305.18290) against the other answers, or supervised training on picks"
    )
    learning_rate: Rate = Field(default=1e-6, description="learning rate")
    epochs: Positive = Field(default=1, description="passes over the picks")
    batch_size: Positive = Field(default=8, description="picks per step")


LessonConfig = CorrectionsConfig | WordsConfig | FeedbackConfig | PicksConfig


class LessonsConfig(Section):
    """How each kind of the owner's feedback is learned, except worked solutions."""

    corrections: CorrectionsConfig = CorrectionsConfig()
    words: WordsConfig = WordsConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    picks: PicksConfig = PicksConfig()
    quiz_problems: Annotated[int, Field(ge=0)] = Field(
        default=200,
        description="training problems answered before and after the lessons and the rounds; a lesson that makes the "
        "student worse is undone; 0: no quiz",
    )
