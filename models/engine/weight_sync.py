"""What the engine's memory holds, seen from inside of vLLM: weights are loaded here in place, and read back."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import one_hot
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, UnquantizedEmbeddingMethod
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

ADAPTED = "base_model.model."  # what peft puts in front of a module's name
COLUMNS = 8  # of each packed matrix that are read back: an update moves nearly every one


def reload(worker: Any, folder: str) -> list[str]:
    """Loads a folder's weights in place, as vLLM's `collective_rpc` calls it. Returns the parameters left without.

    A parameter is filled if vLLM's loader reports its name and the files held every tensor that it is made of: the
    loader reports fused projections (queries, keys and values, say) as loaded when one of their tensors came.
    """
    model = worker.get_model()
    wanted = [_plain(name) for name, _ in model.named_parameters()]
    load = model.load_weights
    given: set[str] = set()
    reported: set[str] = set()

    def noted(weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in weights:
            given.add(name)
            yield name, tensor

    def load_noted(weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        names = load(noted(weights))
        reported.update(wanted if names is None else names)  # a few models do not say
        return reported

    model.load_weights = load_noted
    try:
        worker.reload_weights(weights_path=folder)
    except Exception:
        finalize_layerwise_reload(model, worker.model_config)  # vLLM leaves the layers half taken apart
        raise
    finally:
        del model.load_weights
    _pack_tied_heads(model)
    came = set(_renamed(model, given))
    lacking = {name for name in wanted if name not in came and not came.issuperset(_parts(model, name))}
    return sorted(lacking | (set(wanted) - {_plain(name) for name in reported}))


def _pack_tied_heads(model: Any) -> None:
    """Has a head that shares the embeddings' weights compute with the new ones.

    On a CPU a layer computes with a packed copy of its weights. A reload packs again what it finds in the files; a tied
    head is not among them, and vLLM leaves it at the weights that the engine was started with (limitation 2 of its
    `model_loader/reload`). On a GPU there is no copy, and this does nothing.
    """
    for module in model.modules():
        if isinstance(module, ParallelLMHead) and isinstance(module.quant_method, UnquantizedEmbeddingMethod):
            module.quant_method.process_weights_after_loading(module)


def differing(worker: Any, folder: str) -> tuple[list[str], int]:
    """The parameters whose values in the engine's memory are not the files', and how many could be compared.

    Fused ones are taken apart. On a CPU vLLM packs the matrices and may free them (they are seen with the shape (0,)):
    of these some columns are compared, as the engine computes with them.
    """
    model = worker.get_model()
    tensors = _tensors(model, folder)
    held = {_plain(name): tensor for name, tensor in model.named_parameters() if tensor.numel()}
    wrong, compared = set[str](), set[str]()

    def compare(name: str, matches: Callable[[Tensor], bool]) -> None:
        parts = [name] if name in tensors else _parts(model, name)
        if tensors.keys() >= set(parts):
            compared.add(name)
            if not matches(torch.cat([tensors[part]() for part in parts])):
                wrong.add(name)

    for name, tensor in held.items():
        compare(name, partial(_holds, tensor))
    for name, module in _packed(model):
        compare(name, partial(_computes, module))
    return sorted(wrong), len(compared)


def _holds(tensor: Tensor, expected: Tensor) -> bool:
    """Whether a tensor is what it should be; vLLM pads the vocabulary."""
    return tensor[: len(expected)].equal(expected.to(device=tensor.device, dtype=tensor.dtype))


def _packed(model: Any) -> Iterator[tuple[str, Any]]:
    """The layers that compute with what vLLM has packed on a CPU, each under the name of its parameter."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}  # a tied one has its first name
    for module in model.modules():
        if hasattr(module, "cpu_linear") and id(module.weight) in names:
            yield _plain(names[id(module.weight)]), module


def _computes(module: Any, expected: Tensor) -> bool:
    """Whether a layer gives a matrix's columns for unit vectors: sums of one weight and zeros, so they are exact.

    But for numbers too small for bf16 to hold in full, which some processors take for 0.
    """
    dtype = module.weight.dtype
    columns = torch.linspace(0, expected.shape[1] - 1, COLUMNS).long()
    found = module.cpu_linear(one_hot(columns, expected.shape[1]).to(dtype), module.weight, None)
    wanted = expected[:, columns].T.to(dtype)
    return found[:, : wanted.shape[1]].allclose(wanted, rtol=0.0, atol=torch.finfo(dtype).tiny)


def differing_adapter(worker: Any, folder: str, scaling: float) -> tuple[list[str], int]:
    """The same of the adapter that the engine serves: its matrices, the second times `scaling`, as vLLM keeps them.

    A matrix of the file that the engine has no place for is wrong, too.
    """
    model = worker.get_model()
    tensors = _tensors(model, folder)
    wrong, compared = [], set[str]()
    for name, module in model.named_modules():
        stacks = zip(getattr(module, "lora_a_stacked", ()), getattr(module, "lora_b_stacked", ()), strict=True)
        for part, (down, up) in zip(_parts(model, f"{name}.lora"), stacks, strict=False):
            for side, held, scale in (("A", down[0, 0], 1.0), ("B", up[0, 0], scaling)):
                expected = torch.zeros_like(held)
                if read := tensors.get(f"{part}_{side}.weight"):
                    matrix = read().to(device=held.device, dtype=held.dtype) * scale
                    expected[: matrix.shape[0], : matrix.shape[1]] = matrix
                    compared.add(f"{part}_{side}.weight")
                if not held.equal(expected):
                    wrong.append(f"{part}_{side}")
    return wrong + sorted(tensors.keys() - compared), len(compared)


def _plain(name: str) -> str:
    """A parameter's name without what vLLM puts around it to serve adapters."""
    return name.replace(".base_layer.", ".")


def _parts(model: Any, name: str) -> list[str]:
    """What a parameter is made of, by the files' names: `….qkv_proj.weight` of `….q_proj.weight` and two more."""
    *prefix, module, leaf = name.split(".")
    fused = getattr(model, "packed_modules_mapping", {})
    return [".".join([*prefix, part, leaf]) for part in fused.get(module, [module])]


def _renamed(model: Any, names: Iterable[str]) -> list[str]:
    """Names in the files as vLLM's model calls them; fused parameters are still apart."""
    mapper = getattr(model, "hf_to_vllm_mapper", None)
    return list(names) if mapper is None else mapper.get_rename_mapper().apply_list(list(names))


def _tensors(model: Any, folder: str) -> dict[str, Callable[[], Tensor]]:
    """How to read each tensor of a folder's files, by vLLM's name for it."""
    found: dict[str, Callable[[], Tensor]] = {}
    for file in sorted(Path(folder).glob("*.safetensors")):
        tensors = safe_open(file, framework="pt")
        for name in tensors.keys():  # noqa: SIM118
            for renamed in _renamed(model, [name.removeprefix(ADAPTED)]):
                found[renamed] = partial(tensors.get_tensor, name)
    return found
