"""The 19-state random walk: how the error of TD(λ) depends on α and λ, with accumulating and true-online traces.

    python -m benchmarks.random_walk [--runs 100]

A walk begins in the middle of 19 states and ends left of them with reward −1 or right of them with reward +1. The error
is the root mean square over the states, averaged over the first 10 episodes and all runs, as in figures 12.6 and 12.8
of Sutton and Barto 2018. Prints the smallest error for each λ, and writes docs/random-walk.png.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.inputs.options import options
from benchmarks.outputs.page import picture

STATES, EPISODES = 19, 10
END = STATES  # the place of the end, whose value stays 0
TRUTH = np.arange(-18, 20, 2) / 20
LAMBDAS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)
ALPHAS = np.linspace(0.05, 1.0, 20)
PICTURE = Path("docs/random-walk.png")


def main() -> None:
    """Measure all errors, print the smallest ones and write the picture."""
    runs = options(__doc__, {"--runs": 100}).runs
    with picture(PICTURE, 9, 4.2, columns=2, sharey=True) as panels:
        for axes, true_online in zip(panels, (False, True), strict=True):
            name = "true online" if true_online else "accumulating traces"
            for lam in LAMBDAS:
                errors = [rms(float(alpha), lam, runs, true_online=true_online) for alpha in ALPHAS]
                best = int(np.nanargmin(errors))
                print(f"{name}, λ {lam}: {errors[best]:.3f} at α {ALPHAS[best]:.2f}", flush=True)
                axes.plot(ALPHAS, errors, label=f"λ = {lam:g}")
            axes.set(title=name, xlabel="α", ylim=(0.18, 0.6))
            axes.legend(fontsize="small", loc="lower center", ncols=4)  # below the curves
        panels[0].set_ylabel(f"RMS error over {STATES} states and {EPISODES} episodes")


def rms(alpha: float, lam: float, runs: int, *, true_online: bool = False) -> float:
    """Return the mean error over the first 10 episodes of `runs` runs. All settings see the same walks."""
    errors: list[float] = []
    for seed in range(runs):
        chance, values = np.random.default_rng(seed), np.zeros(STATES + 1)
        for _ in range(EPISODES):
            with np.errstate(over="ignore", invalid="ignore"):  # large steps with long traces diverge
                learn(values, walk(chance), alpha, lam, true_online=true_online)
                errors.append(float(np.sqrt(np.mean((values[:STATES] - TRUTH) ** 2))))
    return float(np.mean(errors))


def learn(
    values: np.ndarray, episode: Iterator[tuple[int, float, int]], alpha: float, lam: float, *, true_online: bool
) -> None:
    """Learn the states' values by TD(λ) without discount, in place (Sutton and Barto, sections 12.2 and 12.5)."""
    trace, before = np.zeros_like(values), 0.0
    for state, reward, following in episode:
        error = reward + values[following] - values[state]
        drift = values[state] - before if true_online else 0.0
        added = 1.0 - alpha * lam * trace[state] if true_online else 1.0
        before = values[following]
        trace *= lam
        trace[state] += added
        values += alpha * (error + drift) * trace
        values[state] -= alpha * drift


def walk(chance: np.random.Generator) -> Iterator[tuple[int, float, int]]:
    """Yield the transitions of one walk: state, reward, and the next state or the end."""
    state = STATES // 2
    while True:
        following = state + (1 if chance.random() < 0.5 else -1)
        if 0 <= following < STATES:
            yield state, 0.0, following
            state = following
        else:
            yield state, 1.0 if following == STATES else -1.0, END
            return


if __name__ == "__main__":
    main()
