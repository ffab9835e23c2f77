"""A round's figures by hand, over the round's first prompts and a refill."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tasks.rollouts import verdicts
from tasks.stage import Artifact, commit
from tasks.tables import ROLLOUTS, SCORES, write_table
from tasks.training.metrics import round_figures
from tests.tasks.committed_tables import rollout, score

TRAINED = {"groups": 3.0, "useful_groups": 1.0, "skipped": 0.0, "seconds": 4.5, "loss": -0.25}


def stage(folder: Path, seconds: float, parts: Mapping[str, float] | None = None, **files: Any) -> Artifact:
    folder.mkdir(parents=True)
    for name, content in files.items():
        if isinstance(content, tuple):
            write_table(folder / f"{name}.parquet", *content)
        else:
            (folder / f"{name}.json").write_text(json.dumps(content))
    return commit(folder, folder.name, {}, seconds, parts)


def figures(
    night: Path,
    rewards: list[list[list[float | None]]],
    selections: list[dict[str, float]],
    trained: Mapping[str, float] = TRAINED,
) -> dict[str, float]:
    """`rewards`: by pass, group and sample. A completion of group g has g + 1 tokens; that of sample 0 was cut."""
    passes: list[list[Artifact]] = []
    first = 0
    for number, groups in enumerate(rewards):
        rows = [
            score(f"p{group}", group, sample, reward) | {"parts": json.dumps({"correct": reward, "format": 1.0})}
            for group, own in enumerate(groups, first)
            for sample, reward in enumerate(own)
        ]
        sampled = [
            rollout(row["problem_id"], row["group"], row["sample"], "x" * (row["group"] + 1))
            | {"finish_reason": "stop" if row["sample"] else "length"}
            for row in rows
        ]
        counts = verdicts.count(("gsm8k" if number else "arithmetic", row["verdict"]) for row in rows)
        place, first = night / str(number), first + len(groups)
        run = {"sync": 0.5, "generate": 3.0, "probe_difference": 0.01 + 0.01 * number}
        passes.append(
            [
                stage(place / "select_prompts", 0.5, selection=selections[number]),
                stage(place / "sample", 4.0, run, rollouts=(ROLLOUTS, sampled)),
                stage(place / "score", 0.25, scores=(SCORES, rows), verdicts=counts),
                stage(place / "credit", 0.125),
            ]
        )
    prompts, rollouts, scores, advantages = zip(*passes, strict=True)
    return round_figures(prompts, rollouts, scores, advantages, trained)


def test_a_round_with_a_refill_by_hand(tmp_path: Path) -> None:
    selections = [
        {"drawn": 2, "expected_signal_share": 0.5, "even_signal_share": 0.25},
        {"drawn": 1, "expected_signal_share": 0.8, "even_signal_share": 0.4},
    ]
    found = figures(tmp_path, [[[1.0, 0.0], [0.0, None]], [[1.0, 1.0]]], selections)
    known = {name: value for name, value in found.items() if value or not name.startswith("verdicts/")}
    assert known == pytest.approx(
        {
            "refills": 1,
            "replaced_groups": 1,
            "probe_difference": 0.02,
            "expected_signal_share": (2 * 0.5 + 0.8) / 3,
            "even_signal_share": (2 * 0.25 + 0.4) / 3,
            "signal_share": 1 / 3,
            "groups": 3,
            "useful_groups": 1,
            "skipped": 0,
            "loss": -0.25,
            "reward": 3 / 5,
            "reward/correct": 3 / 5,
            "reward/format": 1.0,
            "completion_length": (1 + 1 + 2 + 2 + 3 + 3) / 6,
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


def test_where_one_pass_had_no_solve_rates_nothing_is_said_of_hope(tmp_path: Path) -> None:
    selections = [{"drawn": 1}, {"drawn": 1, "expected_signal_share": 0.8, "even_signal_share": 0.4}]
    found = figures(tmp_path, [[[1.0, 0.0]], [[1.0, 1.0]]], selections)
    assert not {"expected_signal_share", "even_signal_share"} & found.keys()
    assert (found["refills"], found["replaced_groups"]) == (1, 1)


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    """The grader failed on everything, and the gradient was not finite."""
    found = figures(tmp_path, [[[None, None]]], [{"drawn": 1}], TRAINED | {"grad_norm": float("inf")})
    assert not {"reward", "reward/correct", "grad_norm"} & found.keys()
    assert found["null_rewards"] == 2
    json.dumps(found, allow_nan=False)


def test_a_learned_reward_has_figures_of_its_own_and_is_no_part_of_the_mean(tmp_path: Path) -> None:
    """Of a problem with a verifier and one of the owner's, the last answer cut; the reward model's word is the
    completion's place. The grader is a user's own, and calls its parts as it likes.
    """
    rows = [
        score(f"p{group}", group, sample, reward)
        | {"parts": json.dumps({"learned": float(place), "seconds": 9.0, "tokens": 9.0})}
        | ({"verdict": "judged"} if group else {})
        for place, (group, sample, reward) in enumerate(
            [(0, 0, 1.05), (0, 1, 0.0), (1, 0, -1.0), (1, 1, 1.0), (1, 2, -1.0)]
        )
    ]
    sampled = [rollout(row["problem_id"], row["group"], row["sample"], "x" * (1 + row["sample"])) for row in rows]
    sampled[-1] |= {"finish_reason": "length"}
    found = round_figures(
        [stage(tmp_path / "select_prompts", 0.5, selection={"drawn": 2})],
        [stage(tmp_path / "sample", 4.0, rollouts=(ROLLOUTS, sampled))],
        [stage(tmp_path / "score", 0.25, scores=(SCORES, rows), verdicts={})],
        [stage(tmp_path / "credit", 0.125)],
        TRAINED,
    )
    assert found["reward"] == pytest.approx(1.05 / 2)
    learned = {name: value for name, value in found.items() if name.startswith("reward/")}
    assert learned == {
        "reward/learned": 1.5,
        "reward/learned_owner": 2.5,
        "reward/learned_spread": 0.5,
        "reward/learned_length": pytest.approx(1.0),
    }
