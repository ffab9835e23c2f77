"""The judge's scores of a round's completions, where a reward model's would be."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from conf.sections.lessons import EndpointConfig
from tasks.reward_model.ask import Group, Local, judge_groups, question_of
from tasks.reward_model.learned_reward import OWNER
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import LEARNED, PROMPTS, numbering, read_table, write_table


@stage(resources=("cache", "until", "local"))
def rank_by_judge(
    folder: Path,
    *,
    prompts: Artifact,
    rollouts: Artifact,
    endpoint: EndpointConfig,
    ties: bool,
    date: str,
    cache: Path,
    until: float,
    local: Local | None,
) -> None:
    """Write one score per completion, in the order of the rollouts: of the owner's prompts, and with `ties` of all.

    Null where the judge is not to be trusted: see `tasks/reward_model/judge_prompts.py`. `judged.json` has counts and
    costs.
    """
    table: Any = read_table(prompts.folder / "prompts.parquet", PROMPTS).itertuples()
    asked = {row.group: row for row in table if ties or row.kind == OWNER}
    sampled = sampled_rollouts(rollouts)
    members: dict[int, list[int]] = defaultdict(list)
    for row, rollout in enumerate(sampled):
        if rollout.group in asked and rollout.token_ids:
            members[rollout.group].append(row)
    groups = [
        Group(question_of(json.loads(asked[number].messages)), [sampled[row].text for row in rows])
        for number, rows in members.items()
    ]
    judged = judge_groups(groups, endpoint, cache, until, date, local)
    found = {
        row: score
        for rows, scores in zip(members.values(), judged.scores, strict=True)
        for row, score in zip(rows, scores or (), strict=False)
    }
    rows = [numbering(rollout) | {"learned": found.get(row)} for row, rollout in enumerate(sampled)]
    write_table(folder / "learned.parquet", LEARNED, rows)
    (folder / "judged.json").write_text(json.dumps(judged.summary))
