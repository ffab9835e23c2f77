"""Pretraining in a child process, so that the night's own process need not import torch."""

from pathlib import Path


def pretrain_fully(folder: Path, size: str) -> None:
    """Pretrain a student of a size on its usual number of tokens, with seed 1, unless it is finished."""
    from tasks.pretraining.pretrain import TOKENS, pretrain

    for _ in pretrain(folder, size, TOKENS[size]):
        pass
