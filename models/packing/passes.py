"""Choose how many packed tokens go into a forward pass, so that its update fits into memory."""

import logging
from collections.abc import Sequence

from transformers import PreTrainedModel

from conf.storage.home import NightError
from models.hf.memory_plan import GIB, LEAST_TOKENS, Passes, Shape
from models.packing.lean_layers import recompute_layers
from models.packing.packing import Group, split

log = logging.getLogger("nightschool")


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
        log.info("%.1f GiB are free: %d tokens a pass%s", free / GIB, passes.tokens, what)
    if passes.recomputed:
        recompute_layers(model)
    return passes.tokens


def fewer(groups: Sequence[Group], tokens: int) -> int:
    """Return half of the `tokens` a pass, after memory ran out. Raises NightError if each pass had one completion."""
    if all(sum(len(group.completions) for group in batch) == 1 for batch in split(groups, tokens)):
        longest = max(len(group.prompt) + max(map(len, group.completions)) for group in groups)
        raise NightError(
            f"out of memory: the update of a single completion, of {longest} tokens with its prompt, does not fit; "
            "lower grpo.max_completion_tokens, or train adapters (`lora`)"
        )
    log.warning("out of memory: the step is repeated with %d tokens a pass", tokens // 2)
    return tokens // 2
