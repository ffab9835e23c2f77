"""Estimate the memory of training from a model's shape: how many tokens fit into a pass, and which cards fit a night.

The estimates are arithmetic. Tests compare them with the tensors that torch saves; on an H100 they were above the
peaks of updates (docs/gpu.jsonl).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from models.hf.hardware import GIB

CONTEXT = int(0.6 * GIB)  # a process's CUDA context and kernels
ASLEEP = int(1.2 * GIB)  # what a sleeping engine keeps: context, kernels and graphs (1,219 MiB on an H100)
WORKSPACE = 1 * GIB  # blocks of logits, temporary gradients, fragmentation
ENGINE = 1 * GIB  # vLLM's activations and graphs
CACHED = 8192  # tokens in the key/value cache, below which an engine is not worth starting
STEP = 256  # tokens: free memory varies a little, and the same update should have the same passes
LEAST_TOKENS = 2048  # a GPU computes smaller passes hardly faster; below this, layers are recomputed


class Passes(NamedTuple):
    """The packed `tokens` of a forward pass, and whether its layers are `recomputed` in the backward pass."""

    tokens: int
    recomputed: bool


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder with gated feed-forward layers. `query`, `key_value`: the width of all heads together."""

    layers: int
    hidden: int
    intermediate: int
    query: int
    key_value: int
    vocabulary: int
    tied: bool = True

    @classmethod
    def of(cls, config: Any) -> "Shape":
        """Return the shape in a transformers configuration. Raises AttributeError if it has no such sizes."""
        text = config.get_text_config()
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        query, key_value = text.num_attention_heads * width, text.num_key_value_heads * width
        sizes = (text.hidden_size, text.intermediate_size, query, key_value, text.vocab_size)
        return cls(text.num_hidden_layers, *sizes, tied=bool(text.tie_word_embeddings))

    @property
    def parameters(self) -> int:
        """The number of weights, without those of norms and biases."""
        layer = self.hidden * (2 * self.query + 2 * self.key_value + 3 * self.intermediate)
        return self.layers * layer + self.vocabulary * self.hidden * (1 if self.tied else 2)

    def adapter_parameters(self, rank: int) -> int:
        """Return the number of weights of adapters of this rank on all linear layers."""
        widths = 7 * self.hidden + 2 * self.query + 2 * self.key_value + 3 * self.intermediate
        return self.layers * rank * widths

    def trainer_bytes(self, rank: int | None) -> int:
        """Return what a trainer in bf16 holds between steps. `rank`: of its adapters; None trains all weights.

        Each trained weight has the lower 2 bytes of its fp32 master, and its gradient and two moments in fp32.
        """
        return self.weight_bytes(rank) + 14 * (self.parameters if rank is None else self.adapter_parameters(rank))

    def weight_bytes(self, rank: int | None) -> int:
        """Return what a trainer in bf16 leaves on the GPU while the engine samples: the weights, and its adapters."""
        return 2 * (self.parameters + (0 if rank is None else self.adapter_parameters(rank)))

    def token_bytes(self, adapters: bool, recomputed: bool) -> int:
        """Return the bytes that a forward pass in bf16 saves per packed token, if prompts are as long as completions.

        A layer saves its input, both norms' outputs and the attention's projected output (4 × hidden), gate and factor
        (and, for an adapter, their product), the queries with their norm, rotated rows and output, and keys and values
        once per query head, for prompt and completion. A `recomputed` layer saves its input; while it is recomputed,
        one layer at a time saves the rest.
        """
        attention = 9 * self.query + self.key_value
        layer = 2 * (4 * self.hidden + (3 if adapters else 2) * self.intermediate + attention)
        return 2 * self.layers * self.hidden + layer if recomputed else self.layers * layer

    def passes(self, adapters: bool, free: float, most: int) -> Passes | None:
        """Return how a step's passes fit into `free` bytes with up to `most` tokens each, or None if they don't."""
        for recomputed in (False, True):
            fit = (free - WORKSPACE) / self.token_bytes(adapters, recomputed)
            tokens = most if fit >= most else int(fit) // STEP * STEP
            if tokens >= min(most, LEAST_TOKENS):
                return Passes(tokens, recomputed)
        return None

    def engine_share(self, rank: int | None, card: float) -> float:
        """Return the share of a `card`'s bytes that the engine may take, so that the trainer's have room beside it."""
        return max(0.0, 0.98 - (2 * CONTEXT + self.weight_bytes(rank)) / card)

    def night(self, rank: int | None, card: float, most: int) -> Passes | None:
        """Return how an update's passes fit a card of `card` bytes, or None if engine and trainer do not fit on it.

        The engine sleeps during an update, and only the trainer's weights stay while the engine samples.
        """
        free = card - CONTEXT - ASLEEP
        engine = 2 * self.parameters + ENGINE + CACHED * 4 * self.layers * self.key_value
        if free < engine + self.weight_bytes(rank):
            return None
        return self.passes(rank is not None, free - self.trainer_bytes(rank), most)


STUDENTS = {
    "SmolLM2-135M": Shape(30, 576, 1536, 576, 192, 49_152),
    "SmolLM2-360M": Shape(32, 960, 2560, 960, 320, 49_152),
    "Qwen3-0.6B": Shape(28, 1024, 3072, 2048, 1024, 151_936),
    "Qwen3-1.7B": Shape(28, 2048, 6144, 2048, 1024, 151_936),
    "SmolLM3-3B": Shape(36, 2048, 11_008, 2048, 512, 128_256),
}
METHODS = {"adapters of rank 16": 16, "all weights": None}
CARDS = (8, 12, 16, 24, 80)  # GiB
