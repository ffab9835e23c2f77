"""How the student is trained: GRPO, adapters, the optimizer, and the full settings that engine and trainer receive."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from conf.sections.hardware import EngineOptions
from conf.sections.section import Positive, Section, Share

# Factor on the learning rates of lessons when adapters are trained (Schulman et al. 2025, "LoRA Without Regret": about
# 10).
ADAPTER_RATE_FACTOR = 10.0


class GrpoConfig(Section):
    """Group relative policy optimization: the rounds, the groups and the loss."""

    rounds: Annotated[int, Field(ge=0)] = Field(
        default=10, description="total number of rounds for the `grpo` entries in `stages` that give no number"
    )
    prompts_per_round: Positive = Field(default=40, description="problems drawn for a round; each gets a group")
    group_size: Annotated[int, Field(ge=2, le=64)] = Field(default=8, description="completions per prompt")
    train_on: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        description="completions per group to train on: the subset whose rewards vary most; null: all",
    )
    max_completion_tokens: Positive = Field(default=48, description="a completion is cut after this many tokens")
    temperature: Annotated[float, Field(ge=1, le=2)] = Field(
        default=1.0,
        description="of the rounds' answers. Above 1, the answers of a group differ more; the rounds then train the "
        "policy at that temperature",
    )
    steps_per_round: Positive = Field(default=1, description="optimizer steps per round, on equal shares of its groups")
    scale: Literal["none", "std"] = Field(default="none", description="std: divide advantages by the group's std")
    aggregation: Literal["token", "sequence", "constant"] = Field(
        default="token",
        description="average the loss over tokens (DAPO) or completions (GRPO), or divide it by a constant (Dr. GRPO)",
    )
    importance: Literal["token", "sequence"] = Field(
        default="token",
        description="ratio to the old policy per token, or per completion (GSPO; use clips of about 0.0003)",
    )
    credit: Literal["episode", "td"] = Field(
        default="episode",
        description="advantages in multi-turn episodes: the same for all turns, or one per turn (models/advantages.py)",
    )
    clip_low: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.2, description="lower clip of the ratio: 1 - clip_low"
    )
    clip_high: Annotated[float, Field(ge=0)] = Field(default=0.28, description="upper clip of the ratio: 1 + clip_high")
    kl_coefficient: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description="weight of the KL term (k3, with the gradient of k2) against the checkpoint that the block began "
        "with; at least 0.02 while a learned reward is used",
    )
    sampler_ratio_band: tuple[Share, Annotated[float, Field(ge=1)]] = Field(
        default=(0.5, 2.0), description="mask completions whose geometric-mean ratio to the sampler is outside the band"
    )
    overlong: Literal["train", "mask", "shape"] = Field(
        default="train", description="for cut completions: train on them, mask them, or penalise length near the limit"
    )
    min_useful_groups: Positive = Field(default=2, description="skip a round's update if fewer groups have a signal")
    refills: Annotated[int, Field(ge=0, le=9)] = Field(
        default=1, description="maximum number of times that a round replaces groups without a signal"
    )
    choice: Literal["solve_rate", "signal", "even"] = Field(
        default="solve_rate",
        description="which kinds of problems are drawn most: those solved some of the time, those whose groups had the "
        "largest advantages, or all equally",
    )
    hints: tuple[Share, ...] = Field(
        default=(),
        description="shares of the solution, such as [0.25, 0.5, 0.75], that a hint may reveal if a problem's level is "
        "hardly ever solved; 1: the whole solution replaces one of the student's answers",
    )
    exploration: Share = Field(default=0.3, description="share of the prompts drawn evenly over all kinds of problems")
    quiz_every_rounds: Annotated[int, Field(ge=0)] = Field(
        default=5, description="rounds between quizzes of 100 training problems; 0: no quiz"
    )

    @model_validator(mode="after")
    def a_group_has_what_is_trained_on(self) -> Self:
        """Refuse a `train_on` that exceeds the group size or is combined with per-turn credit."""
        if self.train_on is not None and self.train_on > self.group_size:
            raise ValueError(f"train_on: {self.train_on} is more than the group_size, {self.group_size}; lower it")
        if self.train_on is not None and self.credit != "episode":
            raise ValueError(f"train_on: with credit: {self.credit} all episodes are trained on; set it to null")
        return self


class LoraConfig(Section):
    """LoRA adapters instead of full fine-tuning. Lessons then use ten times the learning rate."""

    rank: Annotated[int, Field(ge=1, le=512)] = Field(default=16, description="rank of an adapter's two matrices")
    alpha: Positive = Field(default=32, description="an adapter's product is scaled by alpha / rank")
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0, description="share of an adapter's inputs dropped, except by KTO and DPO"
    )
    keep: bool = Field(
        default=False,
        description="never merge: from night to night, every checkpoint remains an adapter of the first student",
    )
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        default="all-linear", description="layers with an adapter, or all linear layers except the head"
    )


class OptimizerOptions(Section):
    """AdamW on fp32 master weights."""

    learning_rate: Annotated[float, Field(gt=0)] = Field(
        default=5e-6, description="learning rate of the rounds: two steps of warm-up, then down to 0 over the night"
    )


class OptimizerConfig(OptimizerOptions):
    """The optimizer's full configuration. The learning rate rises from 0 over the first `warmup_steps` steps."""

    warmup_steps: Annotated[int, Field(ge=0)] = 2


class EngineConfig(EngineOptions):
    """The engine's full configuration: its options, and the adapters that it serves."""

    lora: LoraConfig | None = None


class TrainerConfig(Section):
    """The trainer's full configuration: GRPO, optimizer, adapters, memory. `seed` seeds dropout and new adapters."""

    grpo: GrpoConfig = GrpoConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    lora: LoraConfig | None = None
    microbatch_tokens: Positive | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    trust_remote_code: bool = False
    seed: int = 0
