"""What a night learns from the day: traces, picks, corrections, feedback and words, and the teacher it may query."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from conf.redact import password_error
from conf.section import NotInIdentity, Positive, Section, Share
from conf.sections.benchmark import BenchmarkName

Rate = Annotated[float, Field(gt=0)]


class DayConfig(Section):
    """A generated day, besides the journal: for the starter night, which has no owner yet.

    Its lessons are only for the original student. After a promotion its picks still judge, and only worked solutions of
    a level that is new (`exam.next_level_at`) are learned.
    """

    generated_traces: Annotated[int, Field(ge=0)] = Field(default=0, description="worked solutions, generated")
    generated_preferences: Annotated[int, Field(ge=0)] = Field(default=0, description="picks of one in five, generated")
    generated_corrections: Annotated[int, Field(ge=0)] = Field(default=0, description="corrected answers, generated")
    generated_feedback: Annotated[int, Field(ge=0)] = Field(default=0, description="rated answers, generated")
    generated_words: Annotated[int, Field(ge=0)] = Field(default=0, description="pieces of text to read, generated")


class TraceFile(Section):
    """A file of worked solutions, or a dataset of the hub, in a common format; see docs/journal.md."""

    source: str = Field(description="a JSONL or Parquet file, or a hub id")
    benchmark: BenchmarkName | None = Field(
        default=None, description="whose problems they solve, if a row does not say; null: they cannot be verified"
    )
    teacher: str = Field(default="file", description="who wrote them")


class EndpointConfig(Section):
    """Another model behind an OpenAI-compatible endpoint, and what it may cost.

    Its key comes from the environment and is never written to disk.
    """

    base_url: NotInIdentity[str] = Field(description='for example "http://127.0.0.1:8000/v1"')
    model: str = Field(description="its name at the endpoint")
    key_variable: str = Field(description="environment variable of the key")
    max_tokens: Positive = Field(default=512, description="tokens of one answer, at most")
    budget_tokens: Positive = Field(default=200_000, description="prompts and answers together, per night")
    budget_minutes: Rate = Field(default=20.0, description="minutes after which a lesson sends no more requests")
    timeout_seconds: Rate = Field(default=60.0, description="for one attempt at one answer")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(default=2, description="further attempts at an answer")

    @field_validator("base_url")
    @classmethod
    def carries_no_password(cls, url: str) -> str:
        """Refuse a password: the configuration is written into the night's folder and into MLflow."""
        if (what := password_error(url, "give the key in the environment variable of `key_variable`")) is not None:
            raise ValueError(what)
        return url


class TeacherConfig(EndpointConfig):
    """A better model, queried for problems that the student failed."""

    key_variable: str = Field(default="NIGHTSCHOOL_TEACHER_KEY", description="environment variable of the key")
    problems: Positive = Field(default=64, description="at most so many problems per night")
    answers: Positive = Field(default=2, description="answers requested per problem")


class JudgeConfig(EndpointConfig):
    """A model that ranks the answers of a group, in place of a reward model; see docs/judge.md.

    It is behind an endpoint, or in a folder that the night serves itself.
    """

    base_url: NotInIdentity[str] = Field(default="", description='for example "http://127.0.0.1:8000/v1"')
    model: str = Field(default="", description="its name at the endpoint")
    checkpoint: str | None = Field(
        default=None,
        description='in place of base_url and model: a folder with a model that the night serves itself, or "champion"',
    )
    context_tokens: Positive = Field(
        default=4096, description="of a `checkpoint`: tokens of a request with its reply, as far as the model can"
    )
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.3, description="of a `checkpoint`: share of the GPU's memory, besides that of `engine`"
    )
    key_variable: str = Field(default="NIGHTSCHOOL_JUDGE_KEY", description="environment variable of the key")
    orders: Annotated[int, Field(ge=2, le=9)] = Field(
        default=3, description="orders in which it sees the same answers; where they disagree, it does not count"
    )
    picks: Positive = Field(default=100, description="at most so many held-out picks that it has to prove itself on")

    @model_validator(mode="after")
    def is_in_one_place(self) -> Self:
        """Refuse a judge that is nowhere, or in two places."""
        if bool(self.base_url and self.model) == (self.checkpoint is not None):
            raise ValueError("name either base_url and model, or checkpoint")
        return self


class DistillConfig(Section):
    """Supervised training on worked solutions."""

    steps: Annotated[int, Field(ge=0)] = Field(
        default=12, description="at most so many optimizer steps; 0: skip the stage"
    )
    max_epochs: Positive = Field(
        default=4, description="times that a trace is learned at most: few traces give fewer steps"
    )
    batch_size: Positive = Field(default=16, description="traces per step")
    learning_rate: Rate = Field(default=2e-5, description="learning rate after warm-up")
    trained_student_rate: Rate = Field(
        default=1e-5, description="the most that the learning rate may be once an earlier night has made the champion"
    )
    own_answers_rate: Rate = Field(
        default=5e-6, description="learning rate of `self_distill`; much more ruins a student"
    )
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=2, description="steps in which the rate grows from 0")
    schedule: Literal["constant", "linear"] = Field(
        default="constant", description="of the learning rate after warm-up; linear: it falls to 0 over the lesson"
    )
    files: tuple[TraceFile, ...] = Field(default=(), description="worked solutions besides the journal's")
    reference_solutions: Annotated[int, Field(ge=0)] = Field(
        default=0, description="solutions of training problems from the benchmarks themselves, drawn anew each night"
    )
    rehearsal: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="share of a lesson that is the student's own answers to everyday prompts, so that it forgets less",
    )
    kept_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="share of the lesson's change that is kept: its weights are averaged with those before it, so that "
        "less is forgotten (WiSE-FT, arXiv 2109.01903)",
    )
    traces_per_problem: Positive = Field(default=4, description="at most so many solutions per problem are learned")
    teacher: TeacherConfig | None = Field(default=None, description="queried during the night; null: no teacher")


class RewardModelConfig(Section):
    """The reward model, fitted to the owner's picks; see docs/reward-model.md."""

    backbone: str | None = Field(
        default=None, description="folder or hub id of a smaller model with the student's tokenizer; null: the student"
    )
    min_picks: Positive = Field(default=30, description="with fewer picks no reward model is fitted")
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25, description="share of the owner's conversations held out to judge the fit"
    )
    epochs: Positive = Field(default=3, description="times that each pick is fitted")
    picks_per_step: Positive = Field(default=8, description="picks per optimizer step")
    learning_rate: Rate = Field(default=2e-5, description="learning rate of the backbone")
    head_learning_rate: Rate = Field(default=1e-3, description="learning rate of the scalar head")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=4, description="steps in which the rates grow from 0")
    centering: Annotated[float, Field(ge=0)] = Field(default=0.01, description="keeps a pick's rewards around 0")
    half_life_nights: Rate = Field(default=14.0, description="nights after which a pick's weight has halved")
    max_tokens: Positive = Field(default=1024, description="tokens of prompt plus answer; longer picks are left out")


class LearnedRewardConfig(Section):
    """The reward model's part in GRPO, while it serves."""

    owner_share: Share = Field(default=0.25, description="share of a round's prompts that are the owner's own")
    weight: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="of the standardised learned reward, on the owner's prompts"
    )
    tie_breaker: Annotated[float, Field(ge=0, le=0.1)] = Field(
        default=0.05, description="most that it can add to or subtract from a verified reward"
    )
    format: Annotated[float, Field(ge=0)] = Field(
        default=0.5, description="reward on an owner's prompt for an answer that is complete and not empty"
    )
    language: Annotated[float, Field(ge=0)] = Field(
        default=0.5, description="reward on an owner's prompt for staying in the Latin script of the prompt"
    )
    kl_coefficient: Rate = Field(default=0.02, description="of the KL term (k3) while a learned reward is used")


class CorrectionsConfig(Section):
    """Supervised training on corrected answers."""

    enabled: bool = Field(default=True, description="false: not learned")
    learning_rate: Rate = Field(default=1e-5, description="learning rate")
    epochs: Positive = Field(default=2, description="times that each line is learned")
    batch_size: Positive = Field(default=8, description="answers per step")


class WordsConfig(Section):
    """Continued pretraining on free text."""

    enabled: bool = Field(default=True, description="false: not learned")
    learning_rate: Rate = Field(default=2e-6, description="learning rate")
    epochs: Positive = Field(default=1, description="times that each line is learned")
    batch_size: Positive = Field(default=8, description="pieces per step")
    max_tokens: Annotated[int, Field(ge=2)] = Field(
        default=256, description="tokens of a piece; longer texts are split"
    )


class FeedbackConfig(Section):
    """KTO (arXiv 2402.01306) on rated answers: the sign of the value counts, not its size."""

    enabled: bool = Field(default=True, description="false: not learned")
    learning_rate: Rate = Field(default=5e-6, description="learning rate")
    epochs: Positive = Field(default=1, description="times that each line is learned")
    batch_size: Annotated[int, Field(ge=2)] = Field(
        default=8, description="answers per step; the KL term is estimated from the others of the same step"
    )
    beta: Rate = Field(default=0.1, description="smaller: the policy may move further from the reference")
    desirable_weight: Rate = Field(default=1.0, description="weight of answers rated above 0")
    undesirable_weight: Rate = Field(default=1.0, description="weight of answers rated below 0")


class PicksConfig(Section):
    """Direct learning from picks, without a reward model; `preference_learning` switches it on."""

    method: Literal["dpo", "best_of_n"] = Field(
        default="dpo", description="DPO (arXiv 2305.18290) against the others, or supervised training on the picked one"
    )
    learning_rate: Rate = Field(default=1e-6, description="learning rate")
    epochs: Positive = Field(default=1, description="times that each line is learned")
    batch_size: Positive = Field(default=8, description="picks per step")
    beta: Rate = Field(default=0.1, description="DPO; smaller: the policy may move further from the reference")


LessonConfig = CorrectionsConfig | WordsConfig | FeedbackConfig | PicksConfig


class LessonsConfig(Section):
    """The owner's feedback besides worked solutions: each kind has its switch and its learning rate."""

    corrections: CorrectionsConfig = CorrectionsConfig()
    words: WordsConfig = WordsConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    picks: PicksConfig = PicksConfig()
    quiz_problems: Annotated[int, Field(ge=0)] = Field(
        default=200,
        description="training problems answered before and after the lessons and the rounds: a lesson that makes the "
        "student worse is taken back; 0: no quiz",
    )
