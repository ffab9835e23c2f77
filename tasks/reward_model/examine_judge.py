"""A judge has to prove itself on the owner's held-out picks before it may serve."""

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from conf.sections.lessons import EndpointConfig
from models.lessons.ranking import exact_interval, hit
from tasks.journal.tables import HELD_OUT
from tasks.reward_model.ask import Group, Local, judge_groups, question_of
from tasks.stage import Artifact, stage
from tasks.tables import read_table


@stage(resources=("cache", "until", "local"))
def examine_judge(
    folder: Path,
    *,
    reward_model: Artifact,
    endpoint: EndpointConfig,
    picks: int,
    date: str,
    cache: Path,
    until: float,
    local: Local | None,
) -> None:
    """Let the judge rank the answers of held-out picks, and write to `outcome.json` whether it may serve.

    It may if the share of picks that it ranks first, where a pick that it does not judge counts as a guess, has a lower
    end (exact, 95 %) above chance. Of more than `picks` it gets so many, the same every time. A judge that fails
    never raises.
    """
    table = read_table(reward_model.folder / "held_out.parquet", HELD_OUT)
    drawn: Any = table.sample(min(picks, len(table)), random_state=0).sort_index()
    groups = [Group(question_of(json.loads(pick.messages)), json.loads(pick.responses)) for pick in drawn.itertuples()]
    judged = judge_groups(groups, endpoint, cache, until, date, local)
    right = [
        hit(scores or [0.0] * len(group.answers), int(chosen))
        for scores, group, chosen in zip(judged.scores, groups, drawn.chosen, strict=True)
    ]
    accuracy = exact_interval(sum(right), len(right))
    chance = fmean(1 / len(group.answers) for group in groups) if groups else 1.0
    outcome = {
        "judge": endpoint.model,
        "serves": accuracy.low > chance,
        "accuracy": asdict(accuracy),
        "chance": chance,
        **judged.summary,
    }
    (folder / "outcome.json").write_text(json.dumps(outcome))


def figures(outcome: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of an outcome for MLflow, by name."""
    accuracy = outcome["accuracy"]
    values = {"serves": float(outcome["serves"]), "chance": outcome["chance"], "held_out": outcome["groups"]}
    values |= {"accuracy": accuracy["value"], "low": accuracy["low"]}
    values |= {"unjudged": outcome["groups"] - outcome["judged"], "order_flips": outcome["order_flips"]}
    return {f"judge/{name}": value for name, value in values.items() if value is not None}
