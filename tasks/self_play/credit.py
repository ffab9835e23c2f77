"""What a proposal earns: most where the student solves it now and then, less the more problems are of its kind."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

import torch

from conf.schema import GrpoConfig
from models.advantages import group_advantages
from tasks.rollouts.sample import sampled_rollouts
from tasks.stage import Artifact, stage
from tasks.tables import ADVANTAGES, PROPOSALS, SCORES, Row, numbering, read_table, table_rows, write_table

FIXED = {"unreadable": -1.0, "repeated": 0.0}  # rewards of what is no new problem


def question_reward(solved: float, share: float) -> float:
    """Return 4p(1 − p) less the share that the problem's kind has of the round's problems.

    p is the share of the answers that are right. The first term is 1 where the student is right every second time and 0
    where it always or never is (as in verifiers and, as min(p, 1 − p), R-Zero, arXiv 2508.05004, whose penalty for
    similar questions the second term is).
    """
    return 4 * solved * (1 - solved) - share


@stage()
def credit_questions(
    folder: Path,
    *,
    prompts: Artifact,
    proposals: Artifact,
    answers: Artifact,
    scores: Artifact,
    credited: Artifact,
    grpo: GrpoConfig,
) -> None:
    """Write each proposal's advantage over the round's others; null for a surplus one, which nobody answered.

    `prompts`: with the table of proposals. `answers`, `scores`, `credited`: of their answers. The advantages are
    weighted so that questions count as much as the answers that are trained on, though they are fewer tokens: each role
    has a baseline, as in Absolute Zero (arXiv 2505.03335), and a denominator of its own.
    """
    judged = table_rows(prompts.folder / "proposals.parquet", PROPOSALS)
    solved: dict[int, list[float]] = defaultdict(list)
    for row in read_table(scores.folder / "scores.parquet", SCORES).to_dict("records"):
        if row["reward"] == row["reward"]:
            solved[int(row["group"])].append(float(row["verdict"] == "correct"))
    asked = [row for row in judged if row["verdict"] == "admitted" and solved[row["asked_group"]]]
    kinds = Counter(row["kind"] for row in asked)
    rewards = {(row["group"], row["sample"]): FIXED[row["verdict"]] for row in judged if row["verdict"] in FIXED}
    for row in asked:
        reward = question_reward(fmean(solved[row["asked_group"]]), kinds[row["kind"]] / len(asked))
        rewards[row["group"], row["sample"]] = reward
    written = sampled_rollouts(proposals)
    given = torch.tensor([rewards.get((one.group, one.sample), float("nan")) for one in written])
    advantages = group_advantages(given.view(1, -1).double(), grpo.scale)
    table = read_table(credited.folder / "advantages.parquet", ADVANTAGES).dropna(subset=["advantage"])
    trained_on = set(zip(table["group"], table["sample"], strict=True))
    questions = sum(one.written for one in written)
    replies = sum(one.written for one in sampled_rollouts(answers) if (one.group, one.sample) in trained_on)
    weighted = (advantages * replies / questions).flatten().tolist()
    rows: list[Row] = [
        numbering(one) | {"advantage": None if weight != weight else weight, "token_advantages": None}
        for one, weight in zip(written, weighted, strict=True)
    ]
    write_table(folder / "advantages.parquet", ADVANTAGES, rows)
    signal = (advantages.nan_to_num(0.0) != 0).flatten()
    (folder / "signal.json").write_text(json.dumps({"groups": len(signal), "with_signal": int(signal.sum())}))
