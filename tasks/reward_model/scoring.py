"""The stages that examine the judge, and that give the answers to the owner's prompts a learned reward."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from conf.schema import TrainerConfig
from conf.sections.lessons import EndpointConfig
from models.lessons.ranking import exact_interval, hit
from tasks.journal.tables import HELD_OUT
from tasks.reward_model import process
from tasks.reward_model.judge import Group, judge_groups, question_of
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, Row, completion_key, read_table, table_rows, write_table
from tasks.workers.worker import Worker


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
    judged, summary = judge_groups(groups, endpoint, cache, until, date)
    right = [
        hit(scores or [0.0] * len(group.answers), int(chosen))
        for scores, group, chosen in zip(judged, groups, drawn.chosen, strict=True)
    ]
    accuracy = exact_interval(sum(right), len(right))
    chance = fmean(1 / len(group.answers) for group in groups) if groups else 1.0
    outcome = {"judge": endpoint.model, "serves": accuracy.low > chance, "accuracy": asdict(accuracy), "chance": chance}
    (folder / "outcome.json").write_text(json.dumps(outcome | summary))


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
    sampled, asked = sampled_rollouts(rollouts), _owners_groups(prompts, rollouts)
    groups = [
        Group(question_of(json.loads(prompt["messages"])), [sampled[place].text for place in places])
        for prompt, places in asked
    ]
    judged, summary = judge_groups(groups, endpoint, cache, until, date)
    found = {
        place: score
        for (_, places), scores in zip(asked, judged, strict=True)
        for place, score in zip(places, scores or (), strict=False)
    }
    _write(folder, rollouts, found)
    (folder / "judged.json").write_text(json.dumps(summary))


@stage(retries=2, resources=("trainer",))
def score_by_reward_model(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    reward_model: Path,
    config: TrainerConfig,
    failed: bool,
    trainer: Worker,
) -> None:
    """Write the reward model's reward for each completion of the owner's prompts, and null for the others, in order.

    A completion without tokens has no last token to score, so its reward is null, as is one that is not finite.
    `failed`: whether the model failed on these completions before. If so, it is not asked again, and every reward is
    null.
    """
    sampled, places = sampled_rollouts(rollouts), [each for _, each in _owners_groups(prompts, rollouts) if not failed]
    asked = [(sampled[own[0]].prompt_token_ids, [sampled[place].token_ids for place in own]) for own in places]
    answers = trainer.call(process.score_answers, reward_model, asked, config) if asked else []
    if failed:
        trainer.call(process.release)  # memory may have been short
    pairs = (pair for own, group in zip(places, answers, strict=True) for pair in zip(own, group, strict=True))
    _write(folder, rollouts, {place: reward for place, reward in pairs if math.isfinite(reward)})


def _owners_groups(prompts: Artifact, rollouts: Artifact) -> list[tuple[Row, list[int]]]:
    """Return each of the owner's prompts with the places of its completions that have tokens among the rollouts."""
    table = table_rows(prompts.folder / "prompts.parquet", PROMPTS)
    asked = {row["group"]: row for row in table if row["kind"] == OWNER}
    places: dict[int, list[int]] = defaultdict(list)
    for place, rollout in enumerate(sampled_rollouts(rollouts)):
        if rollout.group in asked and rollout.token_ids:
            places[rollout.group].append(place)
    return [(asked[group], own) for group, own in places.items()]


def _write(folder: Path, rollouts: Artifact, learned: Mapping[int, float]) -> None:
    """Write a row per rollout. `learned`: the rewards by the rollouts' places; the others get null."""
    sampled = enumerate(sampled_rollouts(rollouts))
    rows = [completion_key(rollout) | {"learned": learned.get(place)} for place, rollout in sampled]
    write_table(folder / "learned.parquet", LEARNED, rows)
