"""What a night learns of the day: worked solutions, picks, corrections, praise, words, and the teacher it may ask."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from conf.redact import complaint
from conf.section import NotInIdentity, Positive, Section, Share
from conf.sections.benchmark import BenchmarkName

Rate = Annotated[float, Field(gt=0)]


class DayConfig(Section):
    """What the night finds of the day besides the journal: a generated day, for a starter without an owner.

    Its lessons are for the student as it came; after a promotion its picks go on to judge, and nothing of it is learnt.
    """

    generated_traces: Annotated[int, Field(ge=0)] = Field(default=0, description="worked solutions, generated")
    generated_preferences: Annotated[int, Field(ge=0)] = Field(default=0, description="picks of one in five, generated")
    generated_corrections: Annotated[int, Field(ge=0)] = Field(default=0, description="corrected answers, generated")
    generated_feedback: Annotated[int, Field(ge=0)] = Field(default=0, description="praise and scolding, generated")
    generated_words: Annotated[int, Field(ge=0)] = Field(default=0, description="pieces of text to read, generated")


class TraceFile(Section):
    """A file of worked solutions, or a dataset of the hub, in one of the common forms; see docs/distillation.md."""

    source: str = Field(description="a JSONL or Parquet file, or a hub id")
    benchmark: BenchmarkName | None = Field(
        default=None, description="whose problems they solve, where a line does not say; null: nobody can judge them"
    )
    teacher: str = Field(default="file", description="who wrote them")


class TeacherConfig(Section):
    """A better model behind an OpenAI-compatible endpoint, asked by night for what the student failed on.

    Its key comes from the environment and is never written anywhere.
    """

    base_url: NotInIdentity[str] = Field(description='for example "http://127.0.0.1:8000/v1"')
    model: str = Field(description="its name at the endpoint")
    key_variable: str = Field(default="NIGHTSCHOOL_TEACHER_KEY", description="environment variable of the key")
    problems: Positive = Field(default=64, description="at most so many problems a night")
    answers: Positive = Field(default=2, description="asked for each problem")
    max_tokens: Positive = Field(default=512, description="of one answer")
    budget_tokens: Positive = Field(default=200_000, description="prompts and answers together, a night")
    budget_usd: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="US dollars a night, which need the prices; null: no limit"
    )
    usd_per_million_prompt_tokens: Annotated[float, Field(ge=0)] = Field(default=0.0, description="price of prompts")
    usd_per_million_answer_tokens: Annotated[float, Field(ge=0)] = Field(default=0.0, description="price of answers")
    budget_minutes: Rate = Field(default=20.0, description="minutes after which a lesson asks nothing more")
    timeout_seconds: Rate = Field(default=60.0, description="for one try of one answer")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(default=2, description="further tries of an answer")

    @field_validator("base_url")
    @classmethod
    def carries_no_password(cls, url: str) -> str:
        """The configuration is written into the night's folder and into MLflow."""
        if (what := complaint(url, "give the key in the environment variable of `key_variable`")) is not None:
            raise ValueError(what)
        return url

    @model_validator(mode="after")
    def money_is_reckoned(self) -> Self:
        """At prices of 0 nothing costs anything, and a limit in money would never be reached."""
        prices = self.usd_per_million_prompt_tokens, self.usd_per_million_answer_tokens
        if self.budget_usd is not None and not any(prices):
            raise ValueError(
                f"budget_usd: {self.budget_usd:g} is never reached at prices of 0; give usd_per_million_prompt_tokens "
                "and usd_per_million_answer_tokens, or leave it out"
            )
        return self


class DistillConfig(Section):
    """Supervised lessons on worked solutions."""

    steps: Annotated[int, Field(ge=0)] = Field(
        default=12, description="at most so many optimizer steps; 0 leaves the stage out"
    )
    max_epochs: Positive = Field(
        default=4, description="times that a trace is learnt at most: of few traces, fewer steps"
    )
    batch_size: Positive = Field(default=16, description="traces a step")
    learning_rate: Rate = Field(default=2e-5, description="after the warm-up")
    own_answers_rate: Rate = Field(
        default=5e-6, description="the same of `self_distill`: a few answers of its own undo a student at much more"
    )
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=2, description="steps in which the rate grows from 0")
    files: tuple[TraceFile, ...] = Field(default=(), description="worked solutions besides the journal's")
    traces_per_problem: Positive = Field(default=4, description="at most so many solutions of one problem are learnt")
    teacher: TeacherConfig | None = Field(default=None, description="asked by night; null: nobody is")


class RewardModelConfig(Section):
    """The reward model, fitted to the owner's picks. See docs/reward-model.md."""

    backbone: str | None = Field(
        default=None,
        description="folder or hub id of a smaller model with the student's tokenizer; null: the student",
    )
    min_picks: Positive = Field(default=30, description="with fewer picks none is fitted")
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25,
        description="share of the owner's conversations that judge the fit, and are in no lesson",
    )
    epochs: Positive = Field(default=3, description="times that each pick is fitted")
    picks_per_step: Positive = Field(default=8, description="picks of an optimizer step")
    learning_rate: Rate = Field(default=2e-5, description="of the backbone")
    head_learning_rate: Rate = Field(default=1e-3, description="of the scalar head, which begins at 0")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=4, description="steps in which the rates grow from 0")
    learning_curve: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        default=(0.25, 0.5), description="shares of the picks that are fitted too, to see what more picks bring"
    )
    centering: Annotated[float, Field(ge=0)] = Field(default=0.01, description="keeps a pick's rewards around 0")
    half_life_nights: Rate = Field(default=14.0, description="nights after which a pick counts half")
    max_tokens: Positive = Field(default=1024, description="of a prompt and an answer; longer picks are left out")


class LearnedRewardConfig(Section):
    """What the reward model may say in GRPO, while it serves."""

    owner_share: Share = Field(default=0.25, description="share of a round's prompts that are the owner's own")
    weight: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0, description="of the standardised learned reward, on the owner's own prompts"
    )
    tie_breaker: Annotated[float, Field(ge=0, le=0.1)] = Field(
        default=0.05, description="most that it can add to or take off a verified reward"
    )
    format: Annotated[float, Field(ge=0)] = Field(
        default=0.5, description="reward of an owner's answer that came to its end and is not empty"
    )
    language: Annotated[float, Field(ge=0)] = Field(
        default=0.5, description="reward of an owner's answer that keeps to the Latin script of its prompt"
    )
    kl_coefficient: Rate = Field(default=0.02, description="of the KL term (k3) while a learned reward is in play")


class CorrectionsConfig(Section):
    """Corrected answers, as supervised lessons."""

    enabled: bool = Field(default=True, description="false: the channel is left out")
    learning_rate: Rate = Field(default=1e-5, description="of its optimizer")
    epochs: Positive = Field(default=2, description="times that each line is learnt")
    batch_size: Positive = Field(default=8, description="answers a step")


class WordsConfig(Section):
    """Free text, read in continued pretraining."""

    enabled: bool = Field(default=True, description="false: the channel is left out")
    learning_rate: Rate = Field(default=2e-6, description="of its optimizer")
    epochs: Positive = Field(default=1, description="times that each line is learnt")
    batch_size: Positive = Field(default=8, description="pieces a step")
    max_tokens: Annotated[int, Field(ge=2)] = Field(
        default=256, description="tokens of a piece; longer text is cut into several"
    )


class FeedbackConfig(Section):
    """Praised and scolded answers, learnt with KTO (arXiv 2402.01306): a value's sign counts, not its size."""

    enabled: bool = Field(default=True, description="false: the channel is left out")
    learning_rate: Rate = Field(default=5e-6, description="of its optimizer")
    epochs: Positive = Field(default=1, description="times that each line is learnt")
    batch_size: Annotated[int, Field(ge=2)] = Field(
        default=8, description="answers a step; the KL term is estimated from the others of the same step"
    )
    beta: Rate = Field(default=0.1, description="the smaller, the further the policy may go from the reference")
    desirable_weight: Rate = Field(default=1.0, description="of praised answers")
    undesirable_weight: Rate = Field(default=1.0, description="of scolded answers")


class PicksConfig(Section):
    """The picks learnt directly, without a reward model; `preference_learning` is their switch."""

    method: Literal["dpo", "best_of_n"] = Field(
        default="dpo",
        description="DPO (arXiv 2305.18290) against the others, or supervised on the one picked",
    )
    learning_rate: Rate = Field(default=1e-6, description="of its optimizer")
    epochs: Positive = Field(default=1, description="times that each line is learnt")
    batch_size: Positive = Field(default=8, description="picks a step")
    beta: Rate = Field(default=0.1, description="DPO: the smaller, the further the policy may go from the reference")


LessonConfig = CorrectionsConfig | WordsConfig | FeedbackConfig | PicksConfig


class LessonsConfig(Section):
    """The owner's own channels besides worked solutions: each has its switch and its learning rate."""

    corrections: CorrectionsConfig = CorrectionsConfig()
    words: WordsConfig = WordsConfig()
    feedback: FeedbackConfig = FeedbackConfig()
    picks: PicksConfig = PicksConfig()
    examine: bool = Field(
        default=False, description="an exam after each step of `stages`, and each of these channels, for the report"
    )
