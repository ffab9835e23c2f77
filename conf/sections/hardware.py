"""How the engine and the trainer use the machine."""

from typing import Annotated

from pydantic import Field

from conf.sections.section import NotInIdentity, Positive, Section

Gpu = Annotated[int, Field(ge=0)]


class HardwareConfig(Section):
    """The trainer's memory, and the GPUs of the engine and the trainer.

    On separate GPUs, the engine and the trainer need not free memory for each other.
    """

    microbatch_tokens: Positive | None = Field(
        default=None,
        description="packed tokens per forward pass; null: 1,280 on a CPU, 4,096 per 12 GB of GPU memory",
    )
    engine_gpu: NotInIdentity[Gpu | None] = Field(
        default=None, description="number of the engine's GPU; null: the first"
    )
    trainer_gpu: NotInIdentity[Gpu | None] = Field(
        default=None, description="number of the trainer's GPU; null: the first"
    )


class EngineOptions(Section):
    """Options of vLLM, the sampler."""

    max_model_len: Positive = Field(default=512, description="longest prompt plus completion, tokens")
    max_num_seqs: Positive = Field(default=256, description="completions sampled at the same time")
    kv_cache_gb: Annotated[float, Field(gt=0)] = Field(default=2.0, description="key/value cache on a CPU, GiB")
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] = Field(default=0.6, description="share of the GPU's memory")
    shard_prompts: Positive | None = Field(
        default=None,
        description="prompts of a round in each shard. Each shard has a separate seed, so its results do not "
        "depend on other shards; up to 8 times as many if each is answered once, as in an exam; null: all",
    )
