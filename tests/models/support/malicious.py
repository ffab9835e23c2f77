"""A pickle that runs code when it is loaded."""

from pathlib import Path
from typing import Any

import torch


class _Malicious:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def write_malicious(file: Path, trace: Path) -> None:
    """Writes weights that leave a file behind, `trace`, as soon as they are unpickled."""
    torch.save({"model.norm.weight": _Malicious(trace)}, file)
