"""Choose how many packed tokens go into a forward pass, so that its update fits into memory."""

from collections.abc import Sequence

from transformers import PreTrainedModel

from conf.storage.home import NightError
from conf.storage.log import log
from models.hf.hardware import GIB
from models.hf.memory_plan import LEAST_TOKENS, Passes, Shape
from models.packing.lean_layers import recompute_layers
from models.packing.packing import Group, split


def fit_passes(model: PreTrainedModel, adapters: bool, free: float, most: int) -> int:
    """Return how many tokens a pass, up to `most`, fit into `free` bytes; if few do, make the layers recompute theirs.

    The estimate can be wrong, so a step whose passes do not fit after all is repeated with `fewer`.
    """
    try:
        shape = Shape.of(model.config)
    except AttributeError:  # an unusual architecture
        return most
    passes = shape.passes(adapters, free, most) or Passes(min(most, LEAST_TOKENS), recomputed=True)
    if passes != (most, False):
        what = "; layers are recomputed in the backward pass" if passes.recomputed else ""
        log.warning("%.1f GiB are free: %d tokens a pass%s", free / GIB, passes.tokens, what)
    if passes.recomputed:
        recompute_layers(model)
    return passes.tokens


def fewer(model: PreTrainedModel, groups: Sequence[Group], tokens: int) -> int:
    """Return how many tokens a pass to try after memory ran out with `tokens`: half of the largest pass, or fewer.

    If each pass had one completion, let the layers recompute theirs instead. Raises NightError if they already do.
    """
    passes = split(groups, tokens)
    if any(sum(len(group.completions) for group in batch) > 1 for batch in passes):
        half = min(tokens, max(sum(group.tokens for group in batch) for batch in passes)) // 2
        log.warning("out of memory: the step is repeated with %d tokens a pass", half)
        return half
    if recompute_layers(model):
        log.warning("out of memory: the step is repeated, and layers are recomputed in the backward pass")
        return tokens
    longest = max(len(group.prompt) + max(map(len, group.completions)) for group in groups)
    raise NightError(
        f"out of memory: the update of a single completion, of {longest} tokens with its prompt, does not fit; lower "
        "grpo.max_completion_tokens (for lessons, engine.max_model_len), train adapters (`lora`), or a smaller student"
    )
