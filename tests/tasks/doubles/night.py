"""A night's folder with made-up figures, as the tasks would leave it, for tests of what comes after the exam."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conf.load import STARTER, frozen_yaml, load_night
from tasks.evaluation.statistics import compare, decide
from tasks.tables import EVALUATIONS, PROMPTS, ROLLOUTS, SCORES, read_table, write_table
from tests.tasks.doubles import exam, tables

DIGESTS = {"champion": "c0ffee" * 4, "distilled": "d15711" * 4, "candidate": "cafe42" * 4}
PARTS = {"arithmetic-1-2": 400, "arithmetic-3": 100, "arithmetic-4": 100}
KINDS = ["1/plus", "1/minus", "1/times", "1/share", "1/boxes", "2/plus-minus", "2/compare", "2/gain-lose"]
SKILL = {"champion": 0.03, "distilled": 0.42, "candidate": 0.62}
TARGET = "arithmetic-1-2"


def write_night(
    folder: Path, *, rounds: int = 3, groups: int = 8, size: int = 4, solved: float = 0.5, hostile: str = ""
) -> dict[str, Any]:
    """Write a whole night and return its summary; `solved`: the last round's share, `hostile`: put into answers."""
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder)
    write_lessons(folder)
    for number in range(1, rounds + 1):
        write_round(folder / f"round-{number:02d}", number, groups, size, solved * number / rounds, hostile)
    found = write_exam(folder, hostile)
    seconds = {"freeze_journal": 0.4, "distill": 34.0, "fit_reward_model": 0.1, "select_prompts": 1.3 * rounds}
    seconds |= {"sample": 12.2 * rounds, "score": 0.3 * rounds, "update": 17.5 * rounds, "evaluate": 61.0}
    return {
        "night": "2026-11-20",
        "decision": "promoted" if found["promote"] else "kept",
        "reasons": found["reasons"],
        "incidents": [],
        "journal": {"refused": 0, "first": [], "unknown_policies": 0},
        "day_copy": [],
        "target": TARGET,
        "accuracy": _accuracies(found, TARGET),
        "benchmarks": {part: _accuracies(found, part) for part in PARTS},
        "digests": DIGESTS,
        "rounds": rounds,
        "seconds": seconds,
        "wall_seconds": 192.0,
        "alarms": [],
        "serving": None,
        "by_hand": [],
        "withheld": None,
        "way_back": "nightschool rollback",
        "report": "report.html",
        "links": {"mlflow": "http://localhost:5000/#/runs/1", "prefect": "http://localhost:4200/runs/1"},
    }


def write_config(folder: Path, *overrides: str) -> None:
    """Freeze the starter's configuration in a night's folder."""
    (folder / "config.yaml").write_text(frozen_yaml(load_night(STARTER, overrides)))


def interval(accuracy: float) -> dict[str, float]:
    """An accuracy with its interval."""
    return {"accuracy": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05, "n": 400}


def write_past_night(folder: Path, champion: float, candidate: float, *, promoted: bool, **other: Any) -> None:
    """Write what is left of a finished night; `other`: what its summary says otherwise."""
    folder.mkdir(parents=True)
    write_config(folder)
    accuracy = {"champion": interval(champion), "candidate": interval(candidate)}
    summary = {"night": folder.name, "decision": "promoted" if promoted else "kept", "target": TARGET, "by_hand": []}
    (folder / "summary.json").write_text(json.dumps({**summary, "accuracy": accuracy, **other}))


def write_lessons(folder: Path) -> None:
    """Write distillation and the reward model's refusal."""
    curve = [{"step": n, "loss": 1.9 / n**0.6, "grad_norm": 3.0 / n, "tokens": 800} for n in range(1, 13)]
    _commit(folder / "distill", {"curve.json": curve, "counts.json": {"kept": 190, "dropped": 2, "unknown": 1}}, 34.0)
    outcome = {"serves": False, "reason": "this version scores with verifiable rewards only", "picks": 40}
    _commit(folder / "fit_reward_model", {"outcome.json": outcome}, 0.1)


def write_round(folder: Path, number: int, groups: int, size: int, solved: float, hostile: str = "") -> None:
    """Write the tables and figures of one round; every other round has a quiz."""
    random = np.random.default_rng(number)
    prompts = [_prompt(number, group) for group in range(groups)]
    places = [(prompt, sample) for prompt in prompts for sample in range(size)]
    right = random.random(len(places)) < solved
    _commit(folder / "select_prompts", {}, 1.3)
    write_table(folder / "select_prompts/prompts.parquet", PROMPTS, prompts)
    _commit(folder / "sample", {}, 12.2)
    texts = [f"{hostile}20 - 8 = {12 + wrong}\n#### {12 + wrong}" for wrong in ~right]
    write_table(
        folder / "sample/rollouts.parquet",
        ROLLOUTS,
        [_rollout(prompt, sample, text) for (prompt, sample), text in zip(places, texts, strict=True)],
    )
    _commit(folder / "score", {}, 0.3)
    write_table(
        folder / "score/scores.parquet",
        SCORES,
        [_score(prompt, sample, bool(correct)) for (prompt, sample), correct in zip(places, right, strict=True)],
    )
    metrics = {
        "reward": float(right.mean()),
        "reward/correct": float(right.mean()),
        "reward/format": 0.9,
        "reward/length": 0.4,
        "signal_share": 0.3 + 0.5 * solved,
        "groups": groups + number,
        "useful_groups": groups // 2,
        "refills": 1,
        "replaced_groups": number,
        **({"expected_signal_share": 0.6, "even_signal_share": 0.4} if number > 1 else {}),
        "completion_length": 30.0 + number,
        "truncated_share": 0.3 / number,
        "entropy": 0.9 / number**0.5,
        "mismatch": 0.02 + 0.001 * random.random(),
        "grad_norm": 0.5 + random.random(),
        "skipped": 0,
        "seconds_update": 17.5,
    }
    _commit(folder / "checkpoint", {"metrics.json": metrics}, 3.0)
    if number % 2 == 0:
        _commit(folder / "quiz", {}, 4.0)
        rows = [_evaluation("quiz", "arithmetic", n, bool(n < 100 * solved), "x" * 24, "") for n in range(100)]
        write_table(folder / "quiz/evaluations.parquet", EVALUATIONS, rows)


def write_exam(folder: Path, hostile: str = "", skill: Mapping[str, float] = SKILL) -> dict[str, Any]:
    """Write three evaluations and the decision on them, and return the content of decision.json."""
    for who, level in skill.items():
        random = np.random.default_rng(len(who))
        rows = [
            _evaluation(who, part, n, bool(random.random() < level / (1 + 9 * (part != TARGET))), DIGESTS[who], hostile)
            for part, count in PARTS.items()
            for n in range(count)
        ]
        _commit(folder / "evaluate" / who, {}, 20.0)
        write_table(folder / "evaluate" / who / "evaluations.parquet", EVALUATIONS, rows)
    read = {who: read_table(folder / "evaluate" / who / "evaluations.parquet", EVALUATIONS) for who in skill}

    def comparison(before: str, after: str, part: str) -> Any:
        pair: list[pd.DataFrame] = [read[who][read[who].benchmark == part] for who in (before, after)]
        return compare(part, pair[0], pair[1], samples=2000, seed=1)

    against = {part: comparison("champion", "candidate", part) for part in PARTS}
    decision = decide([(against[TARGET], 0.05)], [(against[part], 0.06) for part in PARTS if part != TARGET], 0.025)
    found = {
        "promote": decision.promote,
        "reasons": list(decision.reasons),
        "target": TARGET,
        "targets": [TARGET],
        "alpha": 0.025,
        "alpha_spending": "fixed",
        "exams_sat": 1,
        "spent_alpha": 0.025,
        "false_promotions_a_year": 9.125,
        "comparisons": {
            "candidate": {part: asdict(one) for part, one in against.items()},
            "distilled": {part: asdict(comparison("champion", "distilled", part)) for part in PARTS},
        },
        "growth": asdict(comparison("distilled", "candidate", TARGET)),
    }
    _commit(folder / "decide", {"decision.json": found}, 0.5)
    return found


def _commit(folder: Path, files: Mapping[str, Any], seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ({**files, "manifest.json": {"seconds": seconds}}).items():
        (folder / name).write_text(json.dumps(content))


def _accuracies(found: Mapping[str, Any], part: str) -> dict[str, Any]:
    candidate, distilled = (found["comparisons"][who][part] for who in ("candidate", "distilled"))
    return {"champion": candidate["before"], "distilled": distilled["after"], "candidate": candidate["after"]}


def _prompt(number: int, group: int) -> dict[str, Any]:
    kind = KINDS[(group + number) % len(KINDS)]
    question = f"Noah has {20 + group} stamps. Noah gives away 8. How many stamps does Noah have now?"
    name = f"arithmetic/{kind}/{20 + group} - 8"
    row = tables.prompt(name, group, kind=f"arithmetic/{kind}", level=kind[0], question=question)
    return row | {"messages": json.dumps([{"role": "user", "content": question}])}


def _rollout(prompt: Mapping[str, Any], sample: int, text: str) -> dict[str, Any]:
    row = tables.rollout(prompt["problem_id"], prompt["group"], sample, text)
    return row | {"finish_reason": "stop" if sample else "length", "policy_digest": DIGESTS["distilled"]}


def _score(prompt: Mapping[str, Any], sample: int, correct: bool) -> dict[str, Any]:
    row = tables.score(prompt["problem_id"], prompt["group"], sample, float(correct))
    return row | ({"verdict": "no_answer"} if sample == 1 and not correct else {})


def _evaluation(who: str, part: str, number: int, correct: bool, digest: str, hostile: str) -> dict[str, Any]:
    return exam.row(
        f"{part}/{number}",
        "correct" if correct else "wrong",
        policy_digest=digest,
        benchmark=part,
        question=f"What is {number} plus 3?",
        text=f"{hostile}{who}: {number} + 3 = {number + 3}\n#### {number + 3 if correct else number}",
        level="1",
        tokens=12,
    )
