"""Functions that run inside vLLM, through `collective_rpc`, to load weights into its engine and read them back."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import one_hot
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, UnquantizedEmbeddingMethod
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

ADAPTER_PREFIX = "base_model.model."  # peft's prefix of module names
COLUMNS = 8  # number read back from each packed matrix; an update changes nearly every column

# It warns at each reload of layers that have no weights of their own; `differing` returns what is really missing.
logging.getLogger("vllm.model_executor.model_loader.reload.layerwise").setLevel(logging.ERROR)


def reload(worker: Any, folder: str) -> None:
    """Load a folder's weights in place."""
    model = worker.get_model()
    try:
        worker.reload_weights(weights_path=folder)
    except Exception:
        finalize_layerwise_reload(model, worker.model_config)  # vLLM has left the layers disassembled
        raise
    _pack_tied_heads(model)


def _pack_tied_heads(model: Any) -> None:
    """Repack the weights of a head that shares the embeddings' tensor.

    On a CPU, a layer computes with a packed copy of its weights, and a reload repacks only layers whose weights are in
    the files. Those of a tied head are not, so the head's packed copy would stay as it was when the engine started
    (limitation 2 in vLLM's `model_loader/reload`). On a GPU there are no packed copies, and this function does nothing.
    """
    for module in model.modules():
        if isinstance(module, ParallelLMHead) and isinstance(module.quant_method, UnquantizedEmbeddingMethod):
            module.quant_method.process_weights_after_loading(module)


def differing(worker: Any, folder: str) -> tuple[list[str], list[str], int]:
    """Return the names of parameters that are not (or only in part) in the files, the names of those whose values in
    memory differ from the files or cannot be read, and the number of comparisons.

    A fused parameter is compared with the concatenation of its parts. On a CPU, vLLM packs matrices and may free the
    originals (leaving shape (0,)), so some columns of a packed matrix are compared through the layer's product.
    """
    model = worker.get_model()
    tensors = _tensors(model, folder)
    parameters = {_plain(name): tensor for name, tensor in model.named_parameters()}
    parts = {name: [name] if name in tensors else _parts(model, name) for name in parameters}
    missing = {name for name in parameters if not tensors.keys() >= set(parts[name])}
    checks = [(name, partial(_holds, tensor)) for name, tensor in parameters.items() if tensor.numel()]
    checks += [(name, partial(_computes, module)) for name, module in _packed(model)]
    checks = [(name, matches) for name, matches in checks if name not in missing]
    wrong = {name for name, matches in checks if not matches(torch.cat([tensors[part]() for part in parts[name]]))}
    unread = parameters.keys() - missing - {name for name, _ in checks}  # freed, and no packed copy is known
    return sorted(missing), sorted(wrong | unread), len(checks)


def _holds(tensor: Tensor, expected: Tensor) -> bool:
    """Return whether a tensor has the expected values, ignoring the rows by which vLLM pads the vocabulary."""
    return tensor[: len(expected)].equal(expected.to(device=tensor.device, dtype=tensor.dtype))


def _packed(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield (parameter name, layer) for each layer that computes with weights packed by vLLM on a CPU."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}  # tied weights: the first name
    for module in model.modules():
        if hasattr(module, "cpu_linear") and id(module.weight) in names:
            yield _plain(names[id(module.weight)]), module


def _computes(module: Any, expected: Tensor) -> bool:
    """Return whether a layer maps unit vectors to the expected matrix's columns.

    Each product is the sum of one weight and zeros, so it is exact, except that some CPUs flush subnormals to 0.
    """
    dtype = module.weight.dtype
    columns = torch.linspace(0, expected.shape[1] - 1, COLUMNS).long()
    products = module.cpu_linear(one_hot(columns, expected.shape[1]).to(dtype), module.weight, None)
    wanted = expected[:, columns].T.to(dtype)
    return products[:, : wanted.shape[1]].allclose(wanted, rtol=0.0, atol=torch.finfo(dtype).tiny)


def differing_adapter(worker: Any, folder: str, scaling: float) -> tuple[list[str], int]:
    """Return the names of the served adapter's matrices that differ from the files, and how many were compared.

    vLLM stores each B matrix multiplied by `scaling`. A matrix for which the engine has no layer counts as differing.
    """
    model = worker.get_model()
    tensors = _tensors(model, folder)
    wrong, compared = [], set[str]()
    for name, module in model.named_modules():
        stacks = zip(getattr(module, "lora_a_stacked", ()), getattr(module, "lora_b_stacked", ()), strict=True)
        for part, (down, up) in zip(_parts(model, f"{name}.lora"), stacks, strict=False):
            for side, stored, scale in (("A", down[0, 0], 1.0), ("B", up[0, 0], scaling)):
                expected = torch.zeros_like(stored)
                if read := tensors.get(f"{part}_{side}.weight"):
                    matrix = read().to(device=stored.device, dtype=stored.dtype) * scale
                    expected[: matrix.shape[0], : matrix.shape[1]] = matrix
                    compared.add(f"{part}_{side}.weight")
                if not stored.equal(expected):
                    wrong.append(f"{part}_{side}")
    return wrong + sorted(tensors.keys() - compared), len(compared)


def _plain(name: str) -> str:
    """Return a parameter's name without the wrapper layer that vLLM adds to serve adapters."""
    return name.replace(".base_layer.", ".")


def _parts(model: Any, name: str) -> list[str]:
    """Return the names of a parameter's parts in the files: `….q_proj.weight` and two more for `….qkv_proj.weight`."""
    *prefix, module, leaf = name.split(".")
    fused = getattr(model, "packed_modules_mapping", {})
    return [".".join([*prefix, part, leaf]) for part in fused.get(module, [module])]


def _tensors(model: Any, folder: str) -> dict[str, Callable[[], Tensor]]:
    """Return a reader for each tensor in a folder's files, keyed by vLLM's name for it (before parts are fused)."""
    mapper = getattr(model, "hf_to_vllm_mapper", None)
    rename = list if mapper is None else mapper.get_rename_mapper().apply_list
    readers: dict[str, Callable[[], Tensor]] = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        tensors = safe_open(file, framework="pt")
        for name in tensors.keys():  # noqa: SIM118
            for renamed in rename([name.removeprefix(ADAPTER_PREFIX)]):
                readers[renamed] = partial(tensors.get_tensor, name)
    return readers
