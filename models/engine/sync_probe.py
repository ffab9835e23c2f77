"""The sync probe: a fixed text whose log-probabilities prove that a checkpoint's weights reached the engine."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from conf.storage.durable import read_json
from conf.storage.home import NightError
from models.hf.checkpoint import base_of, same_weights
from models.rollout import Rollout

PROBE_FILE = "probe.json"
LENGTH = 40  # tokens: enough to reveal a fault, and few enough to compute in hundredths of a second
TEXT = (
    "A farmer has 17 sheep and buys 25 more at the market. How many sheep does she have now? She has 17 + 25 = 42 "
    "sheep. In Python: def sheep(had, bought): return had + bought"
)
# Nats, mean over the probe's tokens. Correct bf16 implementations differ by 0.02 to 0.05 on average, and by up to 0.5
# on single tokens (measured with the starter model: trainer, vLLM with and without adapters, and transformers).
TOLERANCE = 0.1
START_TOLERANCE = 0.5  # until an engine has shown how much a model's rounding matters: bf16 is coarser for large logits
VISIBLE = 1e-3  # nats, mean: an update that changes the trainer's values by more must also change the engine's

LogProbs = Callable[[Sequence[Rollout]], list[list[float]]]  # nats per token of each rollout: `Trainer.logprobs`


class SyncError(NightError):
    """The engine does not hold the weights that it should have loaded."""


@dataclass(frozen=True)
class Probe:
    """The probe's token ids, and the log-probability of each token after the first, given those before it, in nats."""

    token_ids: list[int]
    logprobs: list[float]

    def difference(self, logprobs: Sequence[float]) -> float:
        """Return the mean absolute difference from other log-probabilities, in nats, over the tokens both cover."""
        pairs = list(zip(self.logprobs, logprobs, strict=False))
        return sum(abs(a - b) for a, b in pairs) / len(pairs)


def tolerance(first: float | None) -> float:
    """Return how far trainer and engine may differ, in nats, given the `first` difference of this engine (None: none).

    vLLM itself has then loaded the weights into a fresh engine, so later differences should be no more than twice that.
    """
    return START_TOLERANCE if first is None else max(TOLERANCE, 2 * first)


def probe_tokens(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the first LENGTH token ids of TEXT."""
    return tokenizer.encode(TEXT, add_special_tokens=False)[:LENGTH]


def take_probe(tokenizer: PreTrainedTokenizerBase, logprobs: LogProbs) -> Probe:
    """Return a model's probe: the token ids of TEXT, and the log-probabilities that the model's trainer computes."""
    token_ids = probe_tokens(tokenizer)
    completion = token_ids[1:]
    rollout = Rollout("probe", 0, 0, token_ids[:1], completion, [], [True] * len(completion), "length", "", "")
    return Probe(token_ids, logprobs([rollout])[0])


def write_probe(checkpoint: Path, probe: Probe) -> None:
    """Write the probe into a checkpoint's folder, so that the checkpoint's digest covers it."""
    (checkpoint / PROBE_FILE).write_text(json.dumps({"version": 1, **asdict(probe)}) + "\n")


def read_probe(checkpoint: Path) -> Probe | None:
    """Return a checkpoint's probe, or None if it has none (because another program wrote the checkpoint)."""
    content = read_json(checkpoint / PROBE_FILE)
    return content and Probe(content["token_ids"], content["logprobs"])


def must_differ(previous: Path, checkpoint: Path, probe: Probe) -> bool:
    """Return whether the engine's log-probabilities of the probe must differ between two checkpoints.

    They need not differ if an update was too small to change the trainer's own log-probabilities, or if one checkpoint
    is an adapter and the other is not, because the adapter may be near 0.
    """
    if not previous.is_dir() or (base_of(previous) == previous) != (base_of(checkpoint) == checkpoint):
        return False
    earlier = read_probe(previous)
    visible = earlier is not None and earlier.difference(probe.logprobs) > VISIBLE
    return visible and not same_weights(previous, checkpoint)
