"""Group-relative advantages."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor


def group_advantages(
    rewards: Float[Tensor, "groups size"], scale: Literal["none", "std"] = "none", epsilon: float = 1e-4
) -> Float[Tensor, "groups size"]:
    """A = r − mean(r of the group), optionally divided by the group's standard deviation (n − 1) + epsilon.

    A NaN reward was not graded: it takes no part in its group's baseline and its advantage is NaN. A group with
    one graded completion has nothing to be compared with: advantage 0. So has one whose rewards are all equal, whatever
    their mean is rounded to.

    Sources: DeepSeekMath (arXiv 2402.03300), equation 4.1.2, with the deviation; Dr. GRPO (arXiv 2503.20783),
    equation 3, without.
    """
    graded = ~rewards.isnan()
    count = graded.sum(dim=1, keepdim=True)
    known = rewards.nan_to_num(0.0)
    lowest = rewards.nan_to_num(float("inf")).amin(dim=1, keepdim=True)
    differ = (known > lowest).any(dim=1, keepdim=True)
    centred = (known - known.sum(dim=1, keepdim=True) / count.clamp(min=1)).where(graded & differ, 0.0)
    if scale == "std":
        deviation = (centred.square().sum(dim=1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        centred = centred / (deviation + epsilon)
    return centred.where(graded, float("nan"))
