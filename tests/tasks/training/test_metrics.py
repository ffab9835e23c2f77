"""A round's figures, worked out by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.rollouts import verdicts
from tasks.tables import PROMPTS, ROLLOUTS, SCORES
from tasks.training.metrics import SampledBatch, learned_metrics, round_metrics
from tests.tasks.doubles.tables import prompt, rollout, score, write_stage

HINTED = 2  # the group whose prompt has a hint
TRAINED = {"groups": 3.0, "useful_groups": 1.0, "skipped": 0.0, "seconds": 4.5, "loss": -0.25}


def sampled_pass(folder: Path, selection: Any, rollouts: list[Any], scores: list[Any], **teacher: Any) -> SampledBatch:
    """A pass of 0.5 s for its prompts, 4 s for its rollouts, 0.25 s for its scores and 0.125 s for its advantages."""
    benchmark = "gsm8k" if folder.name == "1" else "arithmetic"
    groups = dict.fromkeys((row["problem_id"], row["group"]) for row in rollouts)
    prompts = [prompt(*group) | {"hint": "First, " if group[1] == HINTED else None} for group in groups]
    counts = verdicts.count((benchmark, row["verdict"]) for row in scores)
    figures = {"sync": 0.5, "generate": 3.0, "probe_difference": 0.02 if benchmark == "gsm8k" else 0.01}
    return SampledBatch(
        write_stage(folder / "select_prompts", {"prompts": (PROMPTS, prompts)}, 0.5, selection=selection),
        write_stage(folder / "sample", {"rollouts": (ROLLOUTS, rollouts)}, 4.0, figures),
        write_stage(folder / "score", {"scores": (SCORES, scores)}, 0.25, verdicts=counts),
        write_stage(folder / "credit", {}, 0.125, **teacher),
    )


def passes(
    night: Path, rewards: list[list[list[float | None]]], selections: list[dict[str, float]]
) -> list[SampledBatch]:
    """`rewards`: by pass, group and sample. A completion of group g has g + 1 tokens; that of sample 0 was cut."""
    found: list[SampledBatch] = []
    first = 0
    for number, groups in enumerate(rewards):
        scores = [
            score(f"p{group}", group, sample, reward) | {"parts": json.dumps({"correct": reward, "format": 1.0})}
            for group, values in enumerate(groups, first)
            for sample, reward in enumerate(values)
        ]
        rollouts = [
            rollout(row["problem_id"], row["group"], row["sample"], "x" * (row["group"] + 1))
            | {"finish_reason": "stop" if row["sample"] else "length"}
            for row in scores
        ]
        found.append(sampled_pass(night / str(number), selections[number], rollouts, scores))
        first += len(groups)
    return found


def test_questions_that_the_student_wrote_are_no_groups(tmp_path: Path) -> None:
    (answers,) = passes(tmp_path, [[[1.0, 0.0]]], [{"drawn": 1}])
    (answers.advantages.folder / "signal.json").write_text(json.dumps({"groups": 9, "with_signal": 3}))
    found = round_metrics([answers._replace(scores=None), answers], TRAINED)
    assert (found["groups"], found["useful_groups"], found["signal_share"]) == (9.0, 3.0, 1 / 3)


def test_a_round_with_a_refill(tmp_path: Path) -> None:
    selections = [{"drawn": 2, "expected_signal_share": 0.5}, {"drawn": 1, "expected_signal_share": 0.8}]
    found = round_metrics(passes(tmp_path, [[[1.0, 0.0], [0.0, None]], [[1.0, 1.0]]], selections), TRAINED)
    known = {name: value for name, value in found.items() if value or not name.startswith("verdicts/")}
    assert known == pytest.approx(
        {
            "refills": 1,
            "replaced_groups": 1,
            "probe_difference": 0.02,
            "expected_signal_share": (2 * 0.5 + 0.8) / 3,
            "signal_share": 1 / 3,
            "groups": 3,
            "useful_groups": 1,
            "skipped": 0,
            "loss": -0.25,
            "reward": 3 / 5,
            "reward/correct": 3 / 5,
            "reward/format": 1.0,
            "completion_length": (1 + 1 + 2 + 2) / 4,  # without the hinted group
            "truncated_share": 0.5,
            "null_rewards": 1,
            "tokens_per_second": 12 / 8,
            "verdicts/correct": 3,
            "verdicts/wrong": 2,
            "verdicts/grader_failed": 1,
            "verdicts/arithmetic/correct": 1,
            "verdicts/arithmetic/wrong": 2,
            "verdicts/arithmetic/grader_failed": 1,
            "verdicts/gsm8k/correct": 2,
            "seconds_select_prompts": 1.0,
            "seconds_sample": 8.0,
            "seconds_sync": 1.0,
            "seconds_generate": 6.0,
            "seconds_score": 0.5,
            "seconds_credit": 0.25,
            "seconds_update": 4.5,
        }
    )
    assert found["verdicts/arithmetic/timeout"] == found["verdicts/gsm8k/wrong"] == 0


def test_what_is_not_finite_is_left_out(tmp_path: Path) -> None:
    """The grader failed on everything, and the gradient was not finite."""
    trained = TRAINED | {"grad_norm": float("inf")}
    found = round_metrics(passes(tmp_path, [[[None, None]]], [{"drawn": 1}]), trained)
    assert not {"reward", "reward/correct", "grad_norm"} & found.keys()
    assert found["null_rewards"] == 2
    json.dumps(found, allow_nan=False)


def test_what_episodes_do_not_measure_is_left_out(tmp_path: Path) -> None:
    rollouts = [rollout("p", 0, 0, "x")]
    sampled = sampled_pass(tmp_path, {"drawn": 1}, rollouts, [score("p", 0, 0, 1.0)])
    collected = write_stage(tmp_path / "collect", {"rollouts": (ROLLOUTS, rollouts)}, figures={"generate": 3.0})
    found = round_metrics([sampled._replace(rollouts=collected)], TRAINED)
    assert not {"seconds_sync", "probe_difference"} & found.keys()
    assert found["seconds_generate"] == 3.0


def test_a_learned_reward_is_no_part_of_the_mean(tmp_path: Path) -> None:
    """A problem with a verifier, and an owner's prompt whose last answer was cut. The reward model says 0 to 4.

    The grader is a user's own; its parts may have the names of columns.
    """
    samples = [(0, 0, 1.05), (0, 1, 0.0), (1, 0, -1.0), (1, 1, 1.0), (1, 2, -1.0)]
    scores = [
        score(f"p{group}", group, sample, reward)
        | {"parts": json.dumps({"learned": float(learned), "learned_z": 0.5, "seconds": 9.0, "tokens": 9.0})}
        | ({"verdict": "judged"} if group else {})
        for learned, (group, sample, reward) in enumerate(samples)
    ]
    rollouts = [rollout(row["problem_id"], row["group"], row["sample"], "x" * (1 + row["sample"])) for row in scores]
    rollouts[-1] |= {"finish_reason": "length"}
    found = round_metrics([sampled_pass(tmp_path, {"drawn": 2}, rollouts, scores)], TRAINED)
    assert found["reward"] == pytest.approx(1.05 / 2)
    assert {name: value for name, value in found.items() if name.startswith("reward/")} == {
        "reward/learned": 2.5,
        "reward/learned_spread": 0.5,
        "reward/learned_length": pytest.approx(1.0),
        "reward/learned_z": 0.5,
    }


def test_the_kl_to_the_teacher_is_a_mean_over_tokens(tmp_path: Path) -> None:
    credited = [
        sampled_pass(
            tmp_path / str(number),
            {"drawn": 1},
            [rollout("p", number, 0, "x")],
            [score("p", number, 0, 1.0)],
            teacher={"kl": kl, "tokens": tokens},
        )
        for number, (kl, tokens) in enumerate([(1.0, 30), (0.2, 10), (0.0, 0)])
    ]
    assert round_metrics(credited, TRAINED)["teacher_kl"] == pytest.approx(0.8)
    assert "teacher_kl" not in round_metrics(credited[2:], TRAINED)


# --- the learned reward

ROWS = [  # group, verdict, tokens, learned, its z
    (0, "correct", 50, None, None),
    (1, "judged", 4, 1.0, -1.0),
    (1, "judged", 8, 3.0, 1.0),
    (2, "judged", 10, -2.0, 1.0),
    (2, "judged", 20, -4.0, -1.0),
    (2, "grader_failed", 99, None, None),
]


def learned(rows: list[tuple[object, ...]], cut: int = 0) -> dict[str, float]:
    """The figures of graded answers, the last `cut` of which were cut."""
    table = pd.DataFrame(rows, columns=["group", "verdict", "tokens", "learned", "learned_z"])
    ended = [number < len(rows) - cut for number in range(len(rows))]
    answers = table[["group", "verdict", "tokens"]].assign(ended=ended)
    return learned_metrics(answers, table[["learned", "learned_z"]])


def test_the_learned_rewards_figures() -> None:
    assert learned(ROWS) == pytest.approx(
        {
            "reward/learned": -0.5,
            "reward/learned_spread": 1.0,
            # within groups: rewards −1, 1, 1, −1, tokens −2, 2, −5, 5
            "reward/learned_length": (2 + 2 - 5 - 5) / math.sqrt(4 * (4 + 4 + 25 + 25)),
            "reward/learned_z": 0.0,
        },
        nan_ok=True,
    )


def test_answers_that_were_cut_count_only_in_the_mean_z() -> None:
    """The reward model has learned from the ends of answers."""
    cut = [(1, "judged", 50, 99.0, -1.0), (2, "judged", 60, -99.0, -1.0)]
    parts = {"reward/learned_z": -2 / 6}
    assert learned([*ROWS, *cut], cut=2) == pytest.approx(learned(ROWS) | parts, nan_ok=True)
    known = {name for name, value in learned(ROWS, cut=len(ROWS)).items() if not math.isnan(value)}
    assert known == parts.keys()
