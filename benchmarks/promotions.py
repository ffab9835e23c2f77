"""How often the sequential exam promotes candidates that are better or no better, and how many problems it asks.

`python -m benchmarks.promotions` prints the tables of docs/exam-and-decision.md, in a minute and without a model. The
probabilities of a single night are exact (`tasks.evaluation.sequential.outlook`). Chains of nights are simulated: each
night begins with the unproven candidate of the night before, and its exam asks the same problems.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import typer
from jaxtyping import Bool, Int
from scipy.stats import binom

from benchmarks.outputs.page import markdown
from tasks.evaluation.sequential import NOT_AHEAD_FROM, levels, looks, outlook, successor_alpha

ALPHA = 0.025
DESIGNS = {
    "fixed, 400": [400],
    "fixed, 1,309": [1309],
    "100 … 850": looks(850),
    "100 … 1,319": looks(1319),
    "100 … 1,600": looks(1600),
}
NO_GAIN = [(0.0, share) for share in (0.05, 0.1, 0.15, 0.2, 0.4)]
GAINS = [(0.02, 0.15), (0.03, 0.15), (0.05, 0.15), (0.08, 0.2), (0.3, 0.4)]
KEPT = (0.3, 0.5, 0.7, 0.9)  # probability that a flip persists in the next night's candidate
CHAINED = (0.05, 0.15, 0.4)  # shares of flips in the simulated chains
UNPROMOTED = 3  # most unpromoted candidates in a row that a next night begins with

Flags = Bool[np.ndarray, "homes"]


@dataclass(frozen=True)
class Night:
    """The same night in many homes: where a candidate was promoted, and where it came from an unproven one."""

    promoted: Flags
    succeeded: Flags


def p_values(gained: Int[np.ndarray, "*n"], lost: Int[np.ndarray, "*n"]) -> np.ndarray:
    """Return the p-values of `tasks.evaluation.statistics.mcnemar` for many exams at once."""
    return np.where(gained + lost > 0, binom.sf(gained - 1, gained + lost, 0.5), 1.0)


def chained(
    homes: int, nights: int, at: Sequence[int], *, share: float, kept: float, seed: int, corrected: bool = True
) -> list[Night]:
    """Simulate consecutive nights with `start_from: latest`, on the same problems, without any true gain.

    Each answer of a fresh candidate flips against the champion's with probability `share`, equally in both directions.
    A successor keeps each of its parent's answers, flipped or not, with probability `kept` (the correlation of their
    flips); the others are drawn anew. Each night asks the problems in an order of its own, so a look draws the parent's
    flips without replacement. `corrected`: whether successors are tested at `successor_alpha`.
    """
    random = np.random.default_rng(seed)
    parents = np.zeros((2, homes), int)  # gained, lost
    unpromoted = np.zeros(homes, int)
    history = []
    for _ in range(nights):
        succeeded = unpromoted > 0
        alpha = np.where(succeeded & corrected, successor_alpha(ALPHA, 1), ALPHA)
        promoted, undecided, parents = _sit(random, parents, np.where(succeeded, kept, 0.0), at, share, alpha)
        ahead = undecided & (parents[0] > parents[1])
        unpromoted = np.where(ahead & (unpromoted < UNPROMOTED), unpromoted + 1, 0)
        history.append(Night(promoted, succeeded))
    return history


def _sit(
    random: np.random.Generator,
    parents: np.ndarray,
    kept: np.ndarray,
    at: Sequence[int],
    share: float,
    alpha: np.ndarray,
) -> tuple[Flags, Flags, np.ndarray]:
    """Return in which homes the candidate is better, in which it is undecided, and its flips on all problems."""
    left_up, left_down = parents
    left = at[-1]
    flips = np.zeros_like(parents)
    promoted, going_on = np.zeros(len(kept), bool), np.ones(len(kept), bool)
    for look, level in zip(at, levels(at, 1.0), strict=True):
        asked = look - (at[-1] - left)
        up = random.hypergeometric(left_up, left - left_up, asked)
        down = random.hypergeometric(left_down, left - left_up - left_down, asked - up)
        left_up, left_down, left = left_up - up, left_down - down, left - asked
        stays = [random.binomial(count, kept) for count in (up, down, asked - up - down)]
        anew = asked - sum(stays)
        gained = random.binomial(anew, share / 2)
        lost = random.binomial(anew - gained, share / (2 - share))
        flips += [stays[0] + gained, stays[1] + lost]
        better = going_on & (p_values(*flips) <= level * alpha)
        promoted |= better
        going_on &= ~better
        if look >= min(NOT_AHEAD_FROM, at[-1]):
            going_on &= flips[0] > flips[1]
    return promoted, going_on, flips


def of_successors(nights: Sequence[Night]) -> float:
    """Return the share of promotions among candidates with unproven parents, in the night with the largest share."""
    return max(float(night.promoted[night.succeeded].mean()) for night in nights[1:])


def one_night() -> str:
    """Return the table of one night: the probability of promotion, and the mean number of problems."""
    cells, rows = NO_GAIN + GAINS, []
    for name, at in DESIGNS.items():
        found = [(gain, outlook(at, ALPHA, gain, share)) for gain, share in cells]
        rows.append([name, *(f"{one.promoted:.{2 if gain else 3}f}, {one.problems:.0f}" for gain, one in found)])
    names = [f"{f'+{100 * gain:.0f}' if gain else 'no gain'} (ψ {share:g})" for gain, share in cells]
    return markdown(" | ".join(["design", *names]), rows)


def chains(homes: int, seed: int) -> str:
    """Return the table of chains without any gain. Each figure is the largest over the shares of flips (`CHAINED`)."""
    nights, rows = range(1, UNPROMOTED + 2), []
    for name, at in DESIGNS.items():
        for kept in KEPT if len(at) > 1 else ():
            found, plain = (
                [
                    chained(homes, len(nights), at, share=share, kept=kept, seed=seed, corrected=corrected)
                    for share in CHAINED
                ]
                for corrected in (True, False)
            )
            worst = [max(float(chain[night - 1].promoted.mean()) for chain in found) for night in nights]
            worst += [max(of_successors(chain) for chain in each) for each in (found, plain)]
            rows.append([name, f"{kept:g}", *(f"{value:.4f}" for value in worst)])
    shown = " | ".join(f"night {night}" for night in nights)
    return markdown(f"design | flips kept | {shown} | of successors | at α", rows)


def main(homes: int = 40_000, seed: int = 1) -> None:
    """Print both tables."""
    print(
        f"α = {ALPHA}; ψ: the share of answers that flip. Probability of promotion, mean number of problems; exact.\n"
    )
    print(one_night())
    print(
        f"\nChains of nights with `start_from: latest` on the same problems, no candidate any better; {homes:,} homes, "
        f"seed {seed}.\nPromotions a night, the most of ψ = {', '.join(f'{share:g}' for share in CHAINED)}; of the "
        f"candidates that go on from an unproven one, at α / 2 and\nwithout that correction.\n"
    )
    print(chains(homes, seed))


if __name__ == "__main__":
    typer.run(main)
