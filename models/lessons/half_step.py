"""Half of what a lesson changed: the weights midway between the checkpoints before and after it."""

import shutil
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.checkpoint import LINEAGE, copy_companions, digest_folder, is_adapter
from models.engine.sync_probe import Probe, file_logprobs, read_probe, write_probe
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model
from models.lora import SETTINGS, WEIGHTS
from models.optim.master_weights import stochastic_bf16


@torch.no_grad()
def write_half_step(before: Path, after: Path, target: Path, trust_remote_code: bool = False) -> None:
    """Write the checkpoint ½(θ_before + θ_after), with its sync probe.

    The mean is taken in fp32 and rounded to bf16 stochastically, the same way each time: most weights move by a single
    last place, and rounding to nearest would leave all of that or nothing. Of a lesson that ended in an adapter it is
    the mean of the adapters' products, as near as an adapter of that rank comes to it.
    """
    if is_adapter(after):
        _write_half_adapter(before, after, target)
    else:
        _write_half_model(before, after, target, trust_remote_code)
    probe = read_probe(after)
    assert probe is not None, f"{after} was not written by this trainer"
    write_probe(target, Probe(probe.token_ids, file_logprobs(target, probe.token_ids, trust_remote_code)))


def _write_half_adapter(before: Path, after: Path, target: Path) -> None:
    saved = load_file(after / WEIGHTS)
    theirs = {name: tensor.float() for name, tensor in saved.items()}
    ours = load_file(before / WEIGHTS) if is_adapter(before) else {}
    half = dict[str, Tensor]()
    for down in (name for name in theirs if ".lora_A." in name):
        up = down.replace(".lora_A.", ".lora_B.")
        half[down], half[up] = theirs[down], theirs[up] / 2
        if ours:
            ups, downs = torch.cat([ours[up].float(), theirs[up]], dim=1), torch.cat([ours[down].float(), theirs[down]])
            half[up], half[down] = nearest_factors(ups / 2, downs, rank=len(theirs[down]))
    target.mkdir(parents=True)
    rounded = {name: tensor.to(saved[name].dtype).contiguous() for name, tensor in half.items()}
    save_file(rounded, target / WEIGHTS, metadata={"format": "pt"})
    for name in (SETTINGS, LINEAGE):
        shutil.copy(after / name, target / name)


def nearest_factors(
    up: Float[Tensor, "out many"], down: Float[Tensor, "many in"], rank: int
) -> tuple[Float[Tensor, "out rank"], Float[Tensor, "rank in"]]:
    """Return the factors of the matrix of a lower rank that is nearest to up · down (Eckart and Young 1936)."""
    (left, small_left), (right, small_right) = torch.linalg.qr(up), torch.linalg.qr(down.T)
    rotate, values, back = torch.linalg.svd(small_left @ small_right.T)
    roots = values[:rank].sqrt()
    return left @ rotate[:, :rank] * roots, roots[:, None] * (back[:rank] @ right.T)


def _write_half_model(before: Path, after: Path, target: Path, trust_remote_code: bool) -> None:
    precision = compute_dtype(torch.device("cuda" if torch.cuda.is_available() else "cpu"))  # the trainer's
    ours, theirs = (load_model(each, precision, torch.device("cpu"), trust_remote_code) for each in (before, after))
    generator = torch.Generator().manual_seed(int(digest_folder(after)[:15], 16))
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        mean = (mine.float() + other.float()) / 2
        mine.copy_(stochastic_bf16(mean, generator) if mine.dtype == torch.bfloat16 else mean)
    copy_companions(after, target)
    ours.save_pretrained(target)
