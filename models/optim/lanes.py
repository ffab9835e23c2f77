"""Gradients that are summed in lanes: to the same bits on one process or on several.

Microbatch i is in lane i mod L. A lane's gradients are summed in its order, and the lanes' sums in a fixed binary tree:
(0 + 1) + (2 + 3). A process has neighbouring lanes, so it computes a part of that tree by itself; then processes
exchange their sums in pairs (recursive doubling), and because addition commutes, both come to the same bits.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from models.hf.hardware import cores

_pairs: list[Any] = []  # this process's partner at each level of the tree, as a process group


class Lanes:
    """The lanes of an optimizer step, and which of them are this process's."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.count = count
        self._kept: list[list[Tensor]] = []  # sums of lanes that wait for their neighbours
        if count > 1 and device.type == "cpu":  # the number of threads decides how products are rounded
            torch.set_num_threads(max(1, len(cores()) // count))

    @property
    def own(self) -> range:
        """The lanes of this process."""
        rank, processes = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        return range(rank * self.count // processes, (rank + 1) * self.count // processes)

    def close(self, lane: int, gradients: Mapping[str, Tensor]) -> None:
        """Add a finished lane of this process to its neighbours; the next begins at zero.

        After the last one `gradients` holds this process's sum.
        """
        sums = list(gradients.values())
        number = lane - self.own.start
        while number % 2:  # as many carries as a binary counter's
            torch._foreach_add_(sums, self._kept.pop())
            number //= 2
        if lane != self.own[-1]:
            self._kept.append([each.clone() for each in sums])
            torch._foreach_zero_(sums)

    def share(self, gradients: Iterable[Tensor]) -> None:
        """Replace this process's sums by those of all."""
        for each in gradients if _pairs else ():
            for pair in _pairs:
                dist.all_reduce(each, group=pair)

    def collect(self, figures: list[dict[str, float]]) -> dict[str, float]:
        """Return the sum of all lanes' figures, in the lanes' order; of `…_max` the largest. `figures`: of the own."""
        every: list[list[dict[str, float]]] = [figures]
        if _pairs:
            every = [[] for _ in range(dist.get_world_size())]
            dist.all_gather_object(every, figures)
        sums: dict[str, float] = defaultdict(float)
        for lane in (lane for each in every for lane in each):
            add(sums, lane)
        return sums


def add(sums: dict[str, float], figures: Mapping[str, float]) -> None:
    """Add figures to sums; of those named `…_max` the larger stays."""
    for name, value in figures.items():
        sums[name] = max(sums[name], value) if name.endswith("_max") else sums[name] + value


def join(rank: int, processes: int, rendezvous: Path, backend: str) -> None:
    """Join the processes that train together. `rendezvous`: a file that is not there yet, in a folder that all see."""
    dist.init_process_group(backend, init_method=f"file://{rendezvous}", rank=rank, world_size=processes)
    _pairs.extend(_partners(rank, processes))


def leave() -> None:
    """Train alone again."""
    if dist.is_initialized():
        _pairs.clear()
        dist.destroy_process_group()


def _partners(rank: int, processes: int) -> Iterator[Any]:
    distance = 1
    while distance < processes:
        # every process takes part in making every group
        groups = {low: dist.new_group([low, low | distance]) for low in range(processes) if not low & distance}
        yield groups[rank & ~distance]
        distance *= 2
