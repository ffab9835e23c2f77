"""The 19-state random walk: how the error of TD(λ) depends on α and λ, with accumulating and true-online traces.

    python -m benchmarks.random_walk [--runs 100]

A walk begins in the middle of 19 states and ends left of them with reward −1 or right of them with reward +1. The error
is the root mean square over the states, averaged over the first 10 episodes and all runs, as in figures 12.6 and 12.8
of Sutton and Barto 2018. Prints the smallest error for each λ, and writes docs/random-walk.png.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.outputs.page import picture

STATES, EPISODES = 19, 10
TRUTH = np.arange(-18, 20, 2) / 20
LAMBDAS = (0.0, 0.4, 0.8, 0.9, 0.95, 0.99, 1.0)
ALPHAS = np.linspace(0.05, 1.0, 20)
PICTURE = Path("docs/random-walk.png")
FEATURES = np.eye(STATES)
END = np.zeros(STATES)


class LinearTd:
    """TD(λ) with linear values, with accumulating or true-online traces (Sutton and Barto, sections 12.2 and 12.5)."""

    def __init__(self, alpha: float, lam: float, *, true_online: bool) -> None:
        self.alpha, self.lam, self.true_online = alpha, lam, true_online
        self.weights = np.zeros(STATES)
        self.begin()

    def begin(self) -> None:
        """Begin an episode with an empty trace."""
        self.trace, self.before = np.zeros(STATES), 0.0

    def learn(self, x: np.ndarray, reward: float, following: np.ndarray) -> None:
        """Learn from a transition, without discount. `x`, `following`: the states' features, or zeros at the end."""
        value, next_value = float(self.weights @ x), float(self.weights @ following)
        error = reward + next_value - value
        if self.true_online:
            self.trace = self.lam * self.trace + (1.0 - self.alpha * self.lam * float(self.trace @ x)) * x
            drift = value - self.before
            self.weights = self.weights + self.alpha * ((error + drift) * self.trace - drift * x)
            self.before = next_value
        else:
            self.trace = self.lam * self.trace + x
            self.weights = self.weights + self.alpha * error * self.trace


def main() -> None:
    """Measure all errors, print the smallest ones and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
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
        chance = np.random.default_rng(seed)
        learner = LinearTd(alpha, lam, true_online=true_online)
        for _ in range(EPISODES):
            learner.begin()
            with np.errstate(over="ignore", invalid="ignore"):  # large steps with long traces diverge
                for state, reward, following in walk(chance):
                    learner.learn(FEATURES[state], reward, END if following is None else FEATURES[following])
                errors.append(float(np.sqrt(np.mean((learner.weights - TRUTH) ** 2))))
    return float(np.mean(errors))


def walk(chance: np.random.Generator) -> Iterator[tuple[int, float, int | None]]:
    """Yield the transitions of one walk: state, reward, and the next state (None at the end)."""
    state = STATES // 2
    while True:
        following = state + (1 if chance.random() < 0.5 else -1)
        if 0 <= following < STATES:
            yield state, 0.0, following
            state = following
        else:
            yield state, 1.0 if following == STATES else -1.0, None
            return


if __name__ == "__main__":
    main()
