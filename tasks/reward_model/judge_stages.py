"""The judge's stages: examine the judge on the owner's held-out picks, and let it rank a round's completions."""

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from conf.sections.lessons import EndpointConfig
from models.lessons.ranking import exact_interval, hit
from tasks.journal.tables import HELD_OUT
from tasks.reward_model.judge import Group, judge_groups, question_of
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, completion_key, read_table, table_rows, write_table


@stage(resources=("cache", "until"))
def examine_judge(
    folder: Path,
    *,
    reward_model: Artifact,
    endpoint: EndpointConfig,
    picks: int,
    date: str,
    cache: Path,
    until: float,
) -> None:
    """Let the judge rank the answers of held-out picks, and write to `outcome.json` whether it may serve.

    The judge's accuracy is the share of picks whose chosen answer it ranks first. The judge may serve if the exact 95 %
    interval of this accuracy lies above chance. A pick without a judgement counts as a random guess. If there are more
    than `picks` picks, a sample is judged, always the same one. If the judge fails, no error is raised.
    """
    table = read_table(reward_model.folder / "held_out.parquet", HELD_OUT)
    drawn: Any = table.sample(min(picks, len(table)), random_state=0).sort_index()
    groups = [Group(question_of(json.loads(pick.messages)), json.loads(pick.responses)) for pick in drawn.itertuples()]
    judged = judge_groups(groups, endpoint, cache, until, date)
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
    """Return how the judge did on the held-out picks: a dict from MLflow metric (such as `judge/serves`) to value."""
    accuracy = outcome["accuracy"]
    values = {"serves": float(outcome["serves"]), "chance": outcome["chance"], "held_out": outcome["groups"]}
    values |= {"accuracy": accuracy["value"], "low": accuracy["low"]}
    values |= {"unjudged": outcome["groups"] - outcome["judged"], "order_flips": outcome["order_flips"]}
    return {f"judge/{name}": value for name, value in values.items() if value is not None}


@stage(resources=("cache", "until"))
def rank_by_judge(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    endpoint: EndpointConfig,
    date: str,
    cache: Path,
    until: float,
) -> None:
    """Let the judge rank the completions of the owner's prompts, and write its scores.

    Writes one score per completion, in rollout order. A score is null if the judge was not asked about the completion,
    or if its rankings are missing or disagree (see `tasks/reward_model/judge.py`). `judged.json` has counts and costs.
    """
    table = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    asked = {row["group"]: row for row in table if row["kind"] == OWNER}
    sampled = sampled_rollouts(rollouts)
    members: dict[int, list[int]] = defaultdict(list)
    for row, rollout in enumerate(sampled):
        if rollout.group in asked and rollout.token_ids:
            members[rollout.group].append(row)
    groups = [
        Group(question_of(json.loads(asked[number]["messages"])), [sampled[row].text for row in rows])
        for number, rows in members.items()
    ]
    judged = judge_groups(groups, endpoint, cache, until, date)
    found = {
        row: score
        for rows, scores in zip(members.values(), judged.scores, strict=True)
        for row, score in zip(rows, scores or (), strict=False)
    }
    rows = [completion_key(rollout) | {"learned": found.get(row)} for row, rollout in enumerate(sampled)]
    write_table(folder / "learned.parquet", LEARNED, rows)
    (folder / "judged.json").write_text(json.dumps(judged.summary))
