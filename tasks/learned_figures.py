"""A round's figures of the learned reward: how high it is, how far apart in a group, and whether it goes by length."""

import pandas as pd

from tasks.verdicts import JUDGED

PLACES = ["group", "verdict", "tokens", "ended"]
PARTS = ("learned_z", "tie_breaker", "language")


def learned_figures(places: pd.DataFrame, parts: pd.DataFrame) -> dict[str, float]:
    """The figures of `metrics.json`, of the graded answers, a row each: group, verdict, tokens, whether it came to its
    end (`ended`); and of the parts of their scores, in the same order. A user's grader may give parts of any name.

    `reward/learned` is the mean of what the reward model says of all answers that came to their end (of another its
    word may be anything), `reward/learned_owner` of those to the owner's own prompts alone. `reward/learned_spread` is
    its standard deviation within a group (of these, where there are any), `reward/learned_length` its correlation with
    the number of tokens, within groups too. What cannot be known is NaN.
    """
    answers = places[PLACES].join(parts.filter(["learned", *PARTS]))
    judged = answers[answers["learned"].notna()]
    ended = judged[judged["ended"]]
    own = ended["verdict"] == JUDGED
    reward, tokens = (
        ended[name].astype(float) - ended.groupby("group")[name].transform("mean") for name in ("learned", "tokens")
    )
    return {
        "reward/learned": float(ended["learned"].mean()),
        "reward/learned_owner": float(ended["learned"][own].mean()),
        "reward/learned_spread": float((reward[own if own.any() else reward.index] ** 2).mean() ** 0.5),
        "reward/learned_length": float(reward.corr(tokens)) if tokens.any() and reward.any() else float("nan"),
        **{f"reward/{part}": float(judged[part].mean()) for part in PARTS if part in judged},
    }
