"""What a night trains on: the day's traces, picks, corrections, feedback and words, and a teacher's answers."""

from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from conf.sections.benchmark import BenchmarkName, OwnBenchmark
from conf.sections.redact import ENDPOINT, refuse_password
from conf.sections.section import NotInIdentity, Positive, Section, Share, checked

EndpointUrl = Annotated[str, checked(partial(refuse_password, instead=ENDPOINT))]
Rate = Annotated[float, Field(gt=0)]


class DayConfig(Section):
    """Lessons generated in addition to the journal's, for a starter night: nobody has taught its student yet.

    Only the untouched student learns all of them. From the night on which a level joins (`exam.next_level_at`), a
    trained student learns new solutions of it and of all further levels each night. The generated picks still help to
    judge its reward model.
    """

    generated_traces: Annotated[int, Field(ge=0)] = Field(default=0, description="number of worked solutions")
    generated_preferences: Annotated[int, Field(ge=0)] = Field(default=0, description="number of picks among 5 answers")
    generated_corrections: Annotated[int, Field(ge=0)] = Field(default=0, description="number of corrected answers")
    generated_feedback: Annotated[int, Field(ge=0)] = Field(default=0, description="number of rated answers")
    generated_words: Annotated[int, Field(ge=0)] = Field(default=0, description="number of texts to read")


class TraceFile(Section):
    """Worked solutions in a file or a hub dataset. docs/journal.md lists the formats."""

    source: str = Field(description="a JSONL or Parquet file, or a hub id")
    benchmark: BenchmarkName | OwnBenchmark | None = Field(
        default=None,
        description="benchmark of rows that name none, your own as in `benchmarks`; null: the solutions in these rows "
        "are not verified",
    )
    teacher: str = Field(default="file", description="who wrote the solutions")


class EndpointConfig(Section):
    """Another model behind an OpenAI-compatible endpoint, and limits on its use.

    The API key comes from NIGHTSCHOOL_TEACHER_KEY or NIGHTSCHOOL_JUDGE_KEY and is never written to disk.
    """

    base_url: NotInIdentity[EndpointUrl] = Field(description='base URL of the API, such as "http://127.0.0.1:8000/v1"')
    model: str = Field(description="the model's name at the endpoint")
    max_tokens: Positive = Field(default=512, description="maximum tokens per answer")
    budget_tokens: Positive = Field(default=200_000, description="maximum tokens per night, prompts plus answers")
    budget_minutes: Rate = Field(default=20.0, description="minutes after which a stage sends no more requests")


class TeacherConfig(Section):
    """A better model that is asked to solve the problems that the student failed."""

    endpoint: EndpointConfig
    problems: Positive = Field(default=64, description="maximum problems to ask about per night")
    answers: Positive = Field(default=2, description="answers requested per problem")


class JudgeConfig(Section):
    """A model that replaces the reward model and ranks the answers of a group; see docs/judge.md."""

    endpoint: EndpointConfig


class DistillConfig(Section):
    """Supervised training on worked solutions."""

    steps: Annotated[int, Field(ge=0)] = Field(
        default=12, description="maximum optimizer steps, of `self_distill`, too; 0: skip both"
    )
    max_epochs: Positive = Field(
        default=4, description="maximum passes over the worked solutions; few give fewer steps"
    )
    batch_size: Positive = Field(default=16, description="worked solutions per step")
    learning_rate: Rate = Field(default=2e-5, description="learning rate after a warm-up of two steps")
    trained_student_rate: Rate = Field(
        default=1e-5,
        description="upper limit of the learning rate if an earlier night trained the model that the night begins with",
    )
    schedule: Literal["constant", "linear"] = Field(
        default="constant", description="learning rate after the warm-up: constant, or falling linearly to 0"
    )
    files: tuple[TraceFile, ...] = Field(default=(), description="worked solutions to add to the journal's")
    reference_solutions: Annotated[int, Field(ge=0)] = Field(
        default=0, description="number of the benchmarks' own training solutions to add, drawn anew each night"
    )
    rehearsal: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="share of a lesson made up of the student's own answers, to everyday prompts and, if an earlier "
        "night trained it, to problems of the levels that it began with; it reduces forgetting",
    )
    traces_per_problem: Positive = Field(default=4, description="maximum solutions learned per problem")
    teacher: TeacherConfig | None = Field(default=None, description="asked for solutions at night; null: no teacher")


class RewardModelConfig(Section):
    """The reward model, fitted to the owner's picks; see docs/reward-model.md."""

    min_picks: Positive = Field(default=30, description="with fewer picks than this, no reward model is fitted")
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25, description="share of the owner's conversations held out to judge students and reward models"
    )


class LearnedRewardConfig(Section):
    """How much the learned reward counts in GRPO, in nights that have one. Answers to the owner's prompts get it."""

    owner_share: Share = Field(default=0.25, description="share of a round's prompts that come from the owner")
    weight: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.4, description="weight of the standardised learned reward on the owner's prompts"
    )


Epochs = Annotated[int, Field(ge=0)]
EPOCHS = "passes over the lines; 0: no such lesson"
LINES_A_STEP = 8  # the batch size of corrections, words and feedback


class CorrectionsConfig(Section):
    """DPO on each correction and the corrected answer, plus supervised training (arXiv 2404.19733)."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=1e-5, description="learning rate")
    epochs: Epochs = Field(default=2, description=EPOCHS)


class WordsConfig(Section):
    """Continued pretraining on free text."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=2e-6, description="learning rate")
    epochs: Epochs = Field(default=1, description=EPOCHS)


class FeedbackConfig(Section):
    """KTO (arXiv 2402.01306) on rated answers. Each counts by its rating's size."""

    batch_size: ClassVar[int] = LINES_A_STEP
    learning_rate: Rate = Field(default=2e-5, description="learning rate")
    epochs: Epochs = Field(default=1, description=EPOCHS)


class PicksConfig(Section):
    """DPO (arXiv 2305.18290) on picks, unless `preference_learning` is `reward_model`."""

    most_kl: ClassVar[float] = 0.1  # nats a token; it ends once the answers shown have changed by more
    learning_rate: Rate = Field(default=1e-5, description="learning rate")
    epochs: Positive = Field(
        default=3,
        description="most passes over the picks; the lesson ends once the answers have changed by 0.1 nats a token",
    )
    batch_size: Positive = Field(default=4, description="picks per step")


LessonConfig = CorrectionsConfig | WordsConfig | FeedbackConfig | PicksConfig


class LessonsConfig(Section):
    """How a night learns each kind of feedback from the owner, except worked solutions."""

    corrections: CorrectionsConfig = CorrectionsConfig()
    words: WordsConfig = WordsConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    picks: PicksConfig = PicksConfig()
    quiz_problems: Annotated[int, Field(ge=0)] = Field(
        default=200,
        description="training problems per quiz, before and after each lesson and block of rounds; a lesson or block "
        "that makes the student worse is undone; 0: no quiz",
    )
