"""Half of what a lesson changed: the weights midway between the checkpoints before and after it."""

from pathlib import Path

import torch

from models.checkpoint import copy_companions, digest_folder
from models.engine.sync_probe import Probe, file_logprobs, read_probe, write_probe
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model
from models.optim.master_weights import stochastic_bf16


@torch.no_grad()
def write_half_step(before: Path, after: Path, target: Path, trust_remote_code: bool = False) -> None:
    """Write the checkpoint ½(θ_before + θ_after), with its sync probe.

    The mean is taken in fp32 and rounded to bf16 stochastically, the same way each time: most weights move by a single
    last place, and rounding to nearest would leave all of that or nothing.
    """
    precision = compute_dtype(torch.device("cuda" if torch.cuda.is_available() else "cpu"))  # the trainer's
    ours, theirs = (load_model(each, precision, torch.device("cpu"), trust_remote_code) for each in (before, after))
    generator = torch.Generator().manual_seed(int(digest_folder(after)[:15], 16))
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        mean = (mine.float() + other.float()) / 2
        mine.copy_(stochastic_bf16(mean, generator) if mine.dtype == torch.bfloat16 else mean)
    copy_companions(after, target)
    ours.save_pretrained(target)
    probe = read_probe(after)
    assert probe is not None, f"{after} was not written by this trainer"
    write_probe(target, Probe(probe.token_ids, file_logprobs(target, probe.token_ids, trust_remote_code)))
