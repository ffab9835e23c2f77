"""How often the decision promotes candidates that are no better or better, and what the vault catches.

`python -m benchmarks.promotions` simulates homes with consecutive nights on one fixed exam and prints the table of
docs/exam-and-decision.md. It takes seconds and no model.
"""

from dataclasses import dataclass

import numpy as np
import typer
from scipy.stats import binom

from tasks.evaluation.alpha_spending import Spending, level
from tasks.evaluation.statistics import bootstrap, power
from tasks.evaluation.vault import is_worse

EXAM, VAULT = 540, 300  # problems
FLIPS = 0.2  # of champion's and candidate's answers


@dataclass(frozen=True)
class Candidates:
    """The gain of a night's candidate: `truly` on any problem, and `by_heart` on the exam's in addition."""

    truly: float = 0.0
    by_heart: float = 0.0


@dataclass(frozen=True)
class Homes:
    """The results of simulated homes, one entry per home.

    `promotions`: their number. `exam`, `vault`: the last champion's accuracy minus the first one's, on each.
    `alarm`: the night of the vault's first alarm, 0 without one.
    """

    promotions: np.ndarray
    exam: np.ndarray
    vault: np.ndarray
    alarm: np.ndarray


def p_values(gained: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Return the p-values of `tasks.evaluation.statistics.mcnemar` for many exams at once."""
    return np.where(gained + lost > 0, binom.sf(gained - 1, gained + lost, 0.5), 1.0)


def chained(
    homes: int, nights: int, candidates: Candidates, *, seed: int, spending: Spending = "fixed", alpha: float = 0.025
) -> Homes:
    """Simulate consecutive nights with the same exam and the same vault.

    A candidate answers as its champion did, except on 2 · FLIPS of the problems, where it answers anew, correctly with
    the champion's true skill plus the gain. So about a fifth of the answers flip, and the candidates of a champion that
    was lucky in the exam lose that luck again. The first student's true skill is ½.
    """
    random = np.random.default_rng(seed)
    problems = [EXAM, VAULT]
    champion = random.random((homes, sum(problems))) < 0.5
    first, skill = champion.copy(), np.full((homes, 2), 0.5)  # on the exam, on the vault
    gain = np.array([candidates.truly + candidates.by_heart, candidates.truly])
    promotions, alarm = np.zeros(homes, int), np.zeros(homes, int)
    for night in range(nights):
        rightly = np.repeat(skill + gain / (2 * FLIPS), problems, axis=1)
        drawn = random.random(champion.shape, dtype=np.float32) < rightly
        candidate = np.where(random.random(champion.shape, dtype=np.float32) < 2 * FLIPS, drawn, champion)
        was, is_now = champion[:, :EXAM], candidate[:, :EXAM]
        found = p_values((~was & is_now).sum(axis=1), (was & ~is_now).sum(axis=1))
        won = found <= level(alpha, spending, night).alpha
        champion[won] = candidate[won]
        skill[won] = np.clip(skill[won] + gain, 0, 1)
        promotions += won
        for home in np.flatnonzero(won & (alarm == 0)):
            alarm[home] = night + 1 if fell(first[home, EXAM:], champion[home, EXAM:]) else 0
    exam, vault = (
        champion[:, part].mean(axis=1) - first[:, part].mean(axis=1) for part in (slice(EXAM), slice(EXAM, None))
    )
    return Homes(promotions, exam, vault, alarm)


def fell(first: np.ndarray, serving: np.ndarray) -> bool:
    """Return whether the vault raises its alarm."""
    gained, lost = int((~first & serving).sum()), int((first & ~serving).sum())
    return is_worse(bootstrap(gained, lost, len(first), samples=1000, seed=1)[1], gained, lost)


def row(what: str, nights: int, found: Homes) -> str:
    """Return a row of the table."""
    alarmed = found.alarm > 0
    night = f"night {np.median(found.alarm[alarmed]):.0f}" if alarmed.any() else "–"
    return (
        f"| {what} | {nights} | {found.promotions.mean() / nights:.2%} | {found.promotions.mean():.2f} | "
        f"{100 * found.exam.mean():+.1f} | {100 * found.vault.mean():+.1f} | {alarmed.mean():.1%} | {night} |"
    )


def main(homes: int = 2000, seed: int = 1) -> None:
    """Print the table and the power of the decision."""
    same, worse = Candidates(), Candidates(truly=-0.01)
    by_heart = Candidates(truly=-0.01, by_heart=0.06)
    print(
        f"{homes} homes, seed {seed}; an exam of {EXAM} problems, a vault of {VAULT}, {FLIPS:.0%} of the answers flip\n"
    )
    print("| candidates | nights | promoted a night | a home | exam | vault | alarm | first raised |")
    print("|:--|--:|--:|--:|--:|--:|--:|--:|")
    print(row("no better, one night", 1, chained(homes, 1, same, seed=seed)))
    print(row("no better, α fixed", 60, chained(homes, 60, same, seed=seed)))
    print(row("no better, α spent", 60, chained(homes, 60, same, seed=seed, spending="quadratic")))
    print(row("each 1 point worse", 60, chained(homes, 60, worse, seed=seed)))
    print(row("each 1 point worse, and 5 better at the exam by heart", 20, chained(homes, 20, by_heart, seed=seed)))
    one = chained(homes, 1, Candidates(truly=0.05), seed=seed).promotions.mean()
    exact = power(EXAM, FLIPS, 0.05, 0.025)
    print(f"\nA true +5 points: promoted in {one:.1%} of the nights; by the exact power {exact:.1%}.")
    print(f"After twenty exams with α spent: {power(EXAM, FLIPS, 0.05, level(0.025, 'quadratic', 20).alpha):.1%}.")


if __name__ == "__main__":
    typer.run(main)
