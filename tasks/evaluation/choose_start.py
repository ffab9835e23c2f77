"""Choose the model that the night begins with: the champion, or the day copy if it has proved better."""

import json
from pathlib import Path

from tasks.evaluation.taste import compare_taste, favours
from tasks.stage import Artifact, stage
from tasks.training.take_back import LEVEL, p_worse


@stage()
def choose_start(
    folder: Path,
    *,
    champion: Artifact | None,
    day: Artifact | None,
    champion_picks: Artifact | None,
    day_picks: Artifact | None,
    alpha: float,
    refused: str = "",
) -> None:
    """Write `start.json`: whether the night begins with the day copy (`day`: true) or the champion, and the `reasons`.

    The day copy must favour your held-out picks more than the champion does (exact one-sided paired test at `alpha`)
    and do no worse in the quiz. `champion`, `day`: their quizzes, if taken. `refused`: why there is no day copy.
    """
    begins, taste = False, compare_taste(champion_picks, day_picks, alpha)
    if refused:
        reasons = [refused]
    elif champion_picks is None or day_picks is None:
        reasons = ["The held-out picks were not ranked."]
    elif taste is None:
        reasons = ["There are too few held-out picks to compare it with the champion."]
    else:
        begins = taste.p_value <= alpha
        reasons = [f"Of your held-out picks, it {favours(taste)}{'' if begins else ': not enough'}."]
        if champion is not None and day is not None and (p_value := p_worse(champion, day)) < LEVEL:
            begins = False
            reasons.append(f"In the quiz it does worse than the champion (p = {p_value:.4f}).")
    (folder / "start.json").write_text(json.dumps({"day": begins, "reasons": reasons}))
