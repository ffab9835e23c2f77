"""What the engine and the trainer use of the machine."""

from typing import Annotated

from pydantic import Field

from conf.sections.section import NotInIdentity, Positive, Section

Gpu = Annotated[int, Field(ge=0)]


class HardwareConfig(Section):
    """The trainer's memory, and which GPU does what.

    On GPUs of their own, engine and trainer need not make room in turn.
    """

    microbatch_tokens: Positive | None = Field(
        default=None,
        description="packed tokens per forward pass; null: 1,280 on a CPU, 4,096 for each 12 GB of a GPU's memory",
    )
    engine_gpu: NotInIdentity[Gpu | None] = Field(
        default=None, description="number of the engine's GPU; null: the first"
    )
    trainer_gpu: NotInIdentity[Gpu | None] = Field(
        default=None, description="number of the trainer's GPU; null: the first"
    )


class EngineOptions(Section):
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
