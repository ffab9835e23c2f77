"""How the engine and the trainer use the machine."""

from typing import Annotated

from pydantic import Field

from conf.sections.section import Positive, Section


class HardwareConfig(Section):
    """How large the trainer's forward passes are."""

    microbatch_tokens: Positive | None = Field(
        default=None,
        description="packed tokens per forward pass; null: 1,280 on a CPU, 4,096 per 12 GB of GPU memory",
    )


class EngineOptions(Section):
    """Options of the engine: vLLM, which samples completions and answers."""

    max_model_len: Positive = Field(default=512, description="maximum tokens of a prompt and its completion together")
    max_num_seqs: Positive = Field(default=256, description="maximum completions sampled at the same time")
    kv_cache_gb: Annotated[float, Field(gt=0)] = Field(default=2.0, description="key/value cache on a CPU, GiB")
    gpu_memory_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.6, description="share of the GPU's memory, at most; less if the trainer needs it"
    )
    shard_prompts: Positive | None = Field(
        default=None,
        description="prompts per shard of a round (of an exam: 8 times as many). A shard has its own seed, so its "
        "completions do not depend on other shards; null: one shard",
    )
