"""The precision in which a student computes."""

import torch


def computed_in(device: torch.device) -> torch.dtype:
    """bfloat16 wherever the device multiplies in it, else float32: trainer, engine and checkpoints alike.

    A CPU without AVX-512 (or Arm's or AMX's like) does such products one number at a time: a night in float32 is many
    times as fast there, and takes twice the memory for weights.
    """
    # what torch's own products go by; there is no public name for it
    slow = device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.float32 if slow else torch.bfloat16
