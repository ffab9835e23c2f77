"""Decide whether packing works for a newly loaded model, by comparing packing with the plain computation."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from conf.storage.log import log
from models.packing.attention import ATTENTION
from models.packing.logprobs import token_logprobs
from models.packing.packing import Group, Pack, hidden_states, pack

# For each group of the probe: tokens in the shared prompt prefix, in the rest of the prompt, and in each completion
SHAPES = ((4, 9, (6, 1, 11)), (0, 5, (4, 8)), (4, 3, (5,)))
NATS, SHARE = 1e-4, 1e-3  # fp32 tolerances: mean difference in nats, and relative difference of the gradients

_packed: dict[str, bool] = {}  # this process's results, by `_kind`

# Returns log-probabilities of a pack's tokens to train on, and entropies of their distributions (fp32, nats)
LogProbs = Callable[[PreTrainedModel, Pack], tuple[Float[Tensor, "predicted"], Float[Tensor, "predicted"]]]


def choose_packing(model: PreTrainedModel) -> LogProbs:
    """If packing matches the plain computation, switch the model to packed attention and return `packed_logprobs`.

    Otherwise, log the reason and return `plain_logprobs`. The result does not depend on the weights, so a process
    checks each model configuration only once.
    """
    if (kind := _kind(model)) not in _packed:
        _packed[kind] = _is_packed(model)
    if not _packed[kind]:
        return plain_logprobs
    model.set_attn_implementation(ATTENTION)
    return packed_logprobs


def _is_packed(model: PreTrainedModel) -> bool:
    """Return whether packing matches the plain computation. Afterwards, the model has its own attention again.

    Compares the log-probabilities of a small probe, and the gradient of their weighted sum at the model's norms and
    biases. Both are computed in fp32, so that rounding hides no fault. Only the first layers are checked, because an
    fp32 copy of a whole bf16 model would take twice its memory.
    """
    own = str(model.config._attn_implementation)
    packed = pack(_probe(model.config.get_text_config().vocab_size), model.device)
    with _first_layers(model), _in_fp32(model):
        expected = _measured(model, packed, plain_logprobs)
        try:
            model.set_attn_implementation(ATTENTION)
            reason = _difference(_measured(model, packed, packed_logprobs), expected)
        except Exception as error:  # on any failure, fall back to the plain computation
            reason = f"{type(error).__name__}: {error}"
    model.set_attn_implementation(own)
    if reason is not None:
        name = type(model).__name__
        log.warning("%s is trained one completion at a time, which is slower, because packing fails: %s", name, reason)
    return reason is None


def _kind(model: PreTrainedModel) -> str:
    config = {name: value for name, value in model.config.to_dict().items() if name != "_name_or_path"}
    return json.dumps([type(model).__qualname__, str(model.device), config], sort_keys=True, default=str)


def packed_logprobs(
    model: PreTrainedModel, packed: Pack
) -> tuple[Float[Tensor, "predicted"], Float[Tensor, "predicted"]]:
    """Compute log-probabilities and entropies for all groups in one forward pass that contains each prompt once."""
    head: Any = model.get_output_embeddings()
    return token_logprobs(hidden_states(model, packed), head.weight, packed.targets, packed.temperature)


def plain_logprobs(
    model: PreTrainedModel, packed: Pack
) -> tuple[Float[Tensor, "predicted"], Float[Tensor, "predicted"]]:
    """Compute log-probabilities and entropies one completion at a time, with the model's own attention and head."""
    found: list[tuple[Tensor, Tensor]] = []
    for group in packed.groups:
        for index, completion in enumerate(group.completions):
            ids = torch.tensor([[*group.prompt, *completion]], device=model.device)
            output = model(input_ids=ids[:, :-1], use_cache=False)
            scores = output.logits[0, len(group.prompt) - 1 :].float() / packed.temperature
            logprobs = scores.log_softmax(dim=-1)
            own = logprobs.gather(1, ids[0, len(group.prompt) :, None]).squeeze(1)
            entropy = -torch.linalg.vecdot(logprobs.detach().exp(), logprobs.detach())
            mask = torch.tensor(group.masks[index] if group.masks else [True] * len(completion), device=model.device)
            found.append((own[mask], entropy[mask]))
    logprobs, entropies = (torch.cat(each) for each in zip(*found, strict=True))
    return logprobs, entropies


def _probe(vocabulary: int) -> list[Group]:
    chance = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(vocabulary, (count,), generator=chance).tolist()

    begun = tokens(max(shared for shared, _, _ in SHAPES))
    return [
        Group([*begun[:shared], *tokens(rest)], [tokens(length) for length in lengths], [], shared=shared)
        for shared, rest, lengths in SHAPES
    ]


def _measured(model: PreTrainedModel, packed: Pack, logprobs: LogProbs) -> tuple[Tensor, Tensor]:
    """Return log-probabilities [predicted], and the gradient of their weighted sum at all norms and biases, flat.

    In the rare model without any, the gradient at all weights.
    """
    with torch.enable_grad():
        found, _ = logprobs(model, packed)
        weights = torch.randn(len(found), generator=torch.Generator().manual_seed(1)).to(found)
        inputs = [each for each in model.parameters() if each.dim() == 1] or [*model.parameters()]
        gradients = torch.autograd.grad((found * weights).sum(), inputs, allow_unused=True)
    return found.detach(), torch.cat([each.flatten() for each in gradients if each is not None])


@contextmanager
def _first_layers(model: PreTrainedModel) -> Iterator[None]:
    """Keep only the model's first layers inside the block: at least two, and at least one of each layer type."""
    transformer: Any = model.base_model
    layers = getattr(transformer, "layers", None)
    if not isinstance(layers, torch.nn.ModuleList):
        yield
        return
    types: list[str] = getattr(model.config.get_text_config(), "layer_types", None) or []
    transformer.layers = layers[: max([2, *(types.index(kind) + 1 for kind in set(types))])]
    try:
        yield
    finally:
        transformer.layers = layers


@contextmanager
def _in_fp32(model: PreTrainedModel) -> Iterator[None]:
    """Make the model compute in fp32 inside the block, and then restore its own weights bit for bit."""
    weights = {p: p.data for p in model.parameters() if p.dtype != torch.float32}
    for parameter in weights:
        parameter.data = parameter.data.float()
    try:
        yield
    finally:
        for parameter, own in weights.items():
            parameter.data = own


def _difference(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> str | None:
    logprobs = float((found[0] - expected[0]).abs().mean())
    gradients = float((found[1] - expected[1]).float().norm() / expected[1].float().norm())
    if logprobs <= NATS and gradients <= SHARE:
        return None
    return f"its log-probabilities would be off by {logprobs:.2g} nats, its gradients by {gradients:.1%}"
