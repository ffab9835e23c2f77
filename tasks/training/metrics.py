"""A round's metrics over all its samples: expected and observed signal, rewards, trainer metrics and durations."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from tasks.rollouts import verdicts
from tasks.rollouts.curriculum import estimates_of, read_arms
from tasks.rollouts.sample import sampled_rollouts
from tasks.rollouts.teacher_advantages import TEACHER
from tasks.stage import Artifact
from tasks.tables import PROMPTS, PROPOSALS, SCORES, read_table, table_rows

REWARD_PARTS = ("correct", "format", "length")  # in every score: see tasks/rollouts/grade.py
OUTLOOK = "expected_signal_share"


class SampledBatch(NamedTuple):
    """The artifacts made from one batch of a round's prompts: the first ones, a refill, or requests for new problems.

    `scores`: None for requests, whose completions are problems rather than answers.
    """

    prompts: Artifact
    rollouts: Artifact
    scores: Artifact | None
    advantages: Artifact


def round_metrics(
    passes: Sequence[SampledBatch], trained: Mapping[str, float], proposals: Artifact | None = None
) -> dict[str, float]:
    """Return the metrics for `metrics.json`, as a dict from name to value, without those that are not finite.

    `trained`: the trainer's metrics, in which `groups` counts all sampled groups and `useful_groups` those with signal.
    Of a round of self-play, only the groups of answers are counted.
    `proposals`: in a self-play round, the artifact of the stage that judged the student's own problems.
    """
    answered = [one for one in passes if one.scores is not None]
    prompts, rollouts, advantages = zip(*((one.prompts, one.rollouts, one.advantages) for one in answered), strict=True)
    scores = [one.scores for one in passes if one.scores is not None]
    update = dict(trained)
    if len(answered) < len(passes):  # the trainer counts each of the student's own questions as a group, too
        signals: list[dict[str, int]] = [one.advantages.read_json("signal.json") for one in answered]
        update["groups"] = float(sum(signal["groups"] for signal in signals))
        update["useful_groups"] = float(sum(signal["with_signal"] for signal in signals))
    figures = {
        **_selection(prompts),
        **{f"curriculum/{arm}": value for arm, value in estimates_of(read_arms(scores[-1].folder)).items()},
        **(_proposals(proposals) if proposals else {}),
        **_answers(prompts, rollouts, scores),
        **_teacher_kl(advantages),
        "signal_share": update["useful_groups"] / update["groups"],
        "seconds_select_prompts": _seconds(prompts),
        "seconds_sample": _seconds(rollouts),
        "seconds_sync": sum(_figures(rollouts, "sync")),
        "seconds_generate": sum(_figures(rollouts, "generate")),
        "probe_difference": max(_figures(rollouts, "probe_difference")),
        "seconds_score": _seconds(scores),
        "seconds_credit": _seconds(advantages),
        "seconds_update": update.pop("seconds"),
        **update,
    }
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _selection(prompts: Sequence[Artifact]) -> dict[str, float]:
    """Return the numbers of refills and replaced groups and, if recorded, the expected share of groups with signal."""
    drawn: list[dict[str, Any]] = [artifact.read_json("selection.json") for artifact in prompts]
    figures: dict[str, float] = {"refills": len(drawn) - 1, "replaced_groups": sum(one["drawn"] for one in drawn[1:])}
    if all(OUTLOOK in one for one in drawn):
        figures[OUTLOOK] = sum(one["drawn"] * one[OUTLOOK] for one in drawn) / sum(one["drawn"] for one in drawn)
    return figures


def _proposals(judged: Artifact) -> dict[str, float]:
    """Return the share of each verdict on the problems that the student wrote."""
    rows = table_rows(judged.folder / "proposals.parquet", PROPOSALS)
    counts = Counter(row["verdict"] for row in rows)
    return {f"self_play/{verdict}": number / len(rows) for verdict, number in counts.items()}


def _answers(prompts: Sequence[Artifact], rollouts: Sequence[Artifact], scores: Sequence[Artifact]) -> dict[str, Any]:
    """Return the metrics of the student's completions. `reward` also leaves out the (standardised) learned rewards.

    `completion_length` is the mean tokens of those without a hint, which leaves less to write; NaN if there are none.
    """
    table = pd.concat(map(_completions, prompts, rollouts, scores))
    counts = Counter(table.verdict)
    table = table[table.finish != "given"]  # a given solution is not the student's
    parts = pd.DataFrame([json.loads(parts) for parts in table.parts[table.reward.notna()]])
    answers = table.assign(ended=table.finish == "stop")[table.reward.notna()].reset_index(drop=True)
    by_benchmark: Counter[str] = Counter()
    for artifact in scores:
        by_benchmark.update(verdicts.as_metrics(artifact.read_json("verdicts.json")))
    return {
        "reward": float(table.reward[~table.verdict.isin(verdicts.OTHERS)].mean()),
        "truncated_share": float((table.finish == "length").mean()),
        "completion_length": float(table.tokens[~table.hinted].mean()),
        "null_rewards": int(table.reward.isna().sum()),
        "tokens_per_second": int(table.tokens.sum()) / _seconds(rollouts),
        **{f"reward/{part}": float(parts[part].mean()) for part in _reward_parts(parts)},
        **(learned_metrics(answers, parts) if (answers.verdict == verdicts.JUDGED).any() else {}),
        **{f"verdicts/{verdict}": count for verdict, count in counts.items()},
        **by_benchmark,
    }


def _completions(prompts: Artifact, rollouts: Artifact, scores: Artifact) -> pd.DataFrame:
    """Return a row per completion: its score, its tokens, how it finished, and whether its prompt had a hint."""
    sampled, scored = sampled_rollouts(rollouts), read_table(scores.folder / "scores.parquet", SCORES)
    hinted = {row["group"] for row in table_rows(prompts.folder / "prompts.parquet", PROMPTS) if row["hint"]}
    return scored.assign(
        tokens=[rollout.written for rollout in sampled],
        finish=[rollout.finish_reason for rollout in sampled],
        hinted=scored.group.isin(hinted),
    )


def _reward_parts(parts: pd.DataFrame) -> list[str]:
    """Return the names of the reward parts to report. For episodes, these are all, with missing values set to 0."""
    if "turns" in parts:
        parts.fillna(0.0, inplace=True)
        return list(parts.columns)
    return [part for part in REWARD_PARTS if part in parts]


def _teacher_kl(advantages: Sequence[Artifact]) -> dict[str, float]:
    """Return the mean KL(student‖teacher) in nats per token, or an empty dict if the round had no teacher."""
    scored = [artifact.read_json(TEACHER) for artifact in advantages if (artifact.folder / TEACHER).exists()]
    tokens = sum(one["tokens"] for one in scored)
    return {"teacher_kl": sum(one["tokens"] * one["kl"] for one in scored) / tokens} if tokens else {}


def _seconds(artifacts: Sequence[Artifact]) -> float:
    """Return the stages' total seconds. A `collect` stage stands for all stages in which its episodes were played."""
    return sum(artifact.figure("seconds") or artifact.seconds for artifact in artifacts)


def _figures(artifacts: Sequence[Artifact], name: str) -> list[float]:
    """Return each stage's figure, or NaN if it has none: stages that play episodes have no `sync`, for example."""
    return [math.nan if (figure := artifact.figure(name)) is None else figure for artifact in artifacts]


def learned_metrics(graded: pd.DataFrame, parts: pd.DataFrame) -> dict[str, float]:
    """Return the metrics of the reward model or the judge, as a dict from name to value; NaN for those without data.

    `graded`: a row per graded answer, with its group, verdict, tokens and whether it `ended` (was not cut off).
    `parts`: the parts of the same answers' scores. The metrics are of the learned reward of the answers that ended (the
    reward model was trained on no others): its mean (`learned`), its standard deviation within groups
    (`learned_spread`) and its correlation with length within groups (`learned_length`); and the mean standardised
    reward of all answers (`learned_z`).
    """
    answers = graded[["group", "verdict", "tokens", "ended"]].join(parts.filter(["learned", "learned_z"]))
    judged = answers[answers["verdict"] == verdicts.JUDGED]
    ended = judged[judged["ended"]]
    reward, tokens = (
        ended[name].astype(float) - ended.groupby("group")[name].transform("mean") for name in ("learned", "tokens")
    )
    return {
        "reward/learned": float(ended["learned"].mean()),
        "reward/learned_spread": float((reward**2).mean() ** 0.5),
        "reward/learned_length": float(reward.corr(tokens)) if tokens.any() and reward.any() else float("nan"),
        "reward/learned_z": float(judged["learned_z"].mean()),
    }
