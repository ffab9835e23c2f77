"""A night's folder with made-up figures, as the tasks would leave it, for tests of what comes after the exam."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conf.load import STARTER, frozen_yaml, load_night
from conf.sections.benchmark import ExamPart
from conf.sections.exam import ExamConfig
from tasks.evaluation.comparison import compare
from tasks.evaluation.decide import decide
from tasks.evaluation.evaluate import look_outcome
from tasks.report.report import summarise
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, PROMPTS, ROLLOUTS, SCORES, read_table
from tests.tasks.doubles import exam, tables

DIGESTS = {"champion": "c0ffee" * 4, "distilled": "d15711" * 4, "candidate": "cafe42" * 4, "first": "f125ed" * 4}
PARTS = {"arithmetic-1-2": 400, "arithmetic-3": 100, "arithmetic-4": 100}
EXAM = ExamConfig(
    target=ExamPart(benchmark="arithmetic", levels=("1", "2")),
    guards=tuple(ExamPart(benchmark="arithmetic", levels=(level,), margin=0.06) for level in ("3", "4")),
)
PLANNED = (400, 868)  # the exam's looks
KINDS = ["1/plus", "1/minus", "1/times", "1/share", "1/boxes", "2/plus-minus", "2/compare", "2/gain-lose"]
SKILL = {"champion": 0.03, "candidate": 0.62}
TARGET = "arithmetic-1-2"
Night = tuple[Path, dict[str, Any]]  # a folder, and the night's summary


def write_night(folder: Path, *, rounds: int = 3, groups: int = 8, hostile: str = "") -> dict[str, Any]:
    """Write a whole night, whose last round solves half, and return its summary. `hostile`: put into answers."""
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder)
    write_lessons(folder)
    for number in range(1, rounds + 1):
        write_round(folder / f"round-{number:02d}", number, groups, 4, 0.5 * number / rounds, hostile)
    for name, right in {"start": 2, "distill": 17, "rounds": 25}.items():
        exam.taken_quiz(folder / "quiz" / name, right, 40)
    found = write_exam(folder, hostile)
    seconds = {"freeze_journal": 0.4, "distill": 34.0, "fit_reward_model": 0.1, "select_prompts": 1.3 * rounds}
    seconds |= {"sample": 12.2 * rounds, "score": 0.3 * rounds, "update": 17.5 * rounds, "evaluate": 61.0}
    links = {"mlflow": "http://localhost:5000/#/runs/1", "prefect": "http://localhost:4200/runs/1"}
    fixed = {"seconds": seconds, "wall_seconds": 192.0, "way_back": "nightschool rollback", "report": "report.html"}
    return summarise(folder, found, rounds, [], links) | fixed


def write_config(folder: Path, *overrides: str) -> None:
    """Freeze the starter's configuration in a night's folder."""
    (folder / "config.yaml").write_text(frozen_yaml(load_night(STARTER, overrides)))


def interval(accuracy: float) -> dict[str, float]:
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
    tables.write_stage(folder / "distill", curve=curve, counts={"kept": 190, "dropped": 2, "unknown": 1})
    outcome = {"serves": False, "reason": "this version scores with verifiable rewards only", "picks": 40}
    tables.write_stage(folder / "fit_reward_model", outcome=outcome)


def write_round(folder: Path, number: int, groups: int, size: int, solved: float, hostile: str = "") -> None:
    """Write the tables and figures of one round; every other round has a quiz."""
    random = np.random.default_rng(number)
    prompts = [_prompt(number, group) for group in range(groups)]
    places = [(prompt, sample) for prompt in prompts for sample in range(size)]
    right = random.random(len(places)) < solved
    tables.write_stage(folder / "select_prompts", {"prompts": (PROMPTS, prompts)})
    texts = [f"{hostile}20 - 8 = {12 + wrong}\n#### {12 + wrong}" for wrong in ~right]
    rollouts = [_rollout(prompt, sample, text) for (prompt, sample), text in zip(places, texts, strict=True)]
    tables.write_stage(folder / "sample", {"rollouts": (ROLLOUTS, rollouts)})
    scores = [_score(prompt, sample, bool(correct)) for (prompt, sample), correct in zip(places, right, strict=True)]
    tables.write_stage(folder / "score", {"scores": (SCORES, scores)})
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
        **({"expected_signal_share": 0.6} if number > 1 else {}),
        "completion_length": 30.0 + number,
        "truncated_share": 0.3 / number,
        "entropy": 0.9 / number**0.5,
        "mismatch": 0.02 + 0.001 * random.random(),
        "grad_norm": 0.5 + random.random(),
        "skipped": 0,
        "seconds_update": 17.5,
    }
    tables.write_stage(folder / "checkpoint", metrics=metrics)
    if number % 2 == 0:
        rows = [_evaluation("quiz", "arithmetic", n, bool(n < 100 * solved), "x" * 24, "") for n in range(100)]
        tables.write_stage(folder / "quiz", {"evaluations": (EVALUATIONS, rows)})


def write_exam(folder: Path, hostile: str = "", *, whole: bool = False) -> dict[str, Any]:
    """Write an exam that ends at its first look, and the decision on it; return decision.json's content.

    `whole`: the student after its lessons and the candidate answer all problems as well.
    """
    for who, level in SKILL.items():
        drawn = np.random.default_rng(len(who))
        solved = {part: drawn.random(count) < level / (1 + 9 * (part != TARGET)) for part, count in PARTS.items()}
        write_evaluations(folder / "evaluate" / who, who, solved, hostile)
    for who, level in {"distilled": 0.42, "candidate": 0.62}.items() if whole else ():
        solved = {TARGET: np.random.default_rng(len(who)).random(400) < level}
        write_evaluations(folder / "evaluate" / f"whole-{who}", who, solved)
    return write_decision(folder, whole=whole)


def write_evaluations(folder: Path, who: str, solved: Mapping[str, Iterable[bool]], hostile: str = "") -> None:
    """Write a model's answers: which problems of each part it solves."""
    rows = [
        _evaluation(who, part, n, bool(right), DIGESTS[who], hostile)
        for part, its in solved.items()
        for n, right in enumerate(its)
    ]
    tables.write_stage(folder, {"evaluations": (EVALUATIONS, rows)}, seconds=20.0)


def write_decision(
    folder: Path,
    roles: Sequence[str] = ("champion", "candidate"),
    *,
    exam: ExamConfig = EXAM,
    alpha: float = 0.025,
    whole: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Write the look on the answers in a night's folder and let `decide` decide; return decision.json's content."""
    exams = {role: Artifact(folder=folder / "evaluate" / role, digest=role) for role in roles}
    before, after = (
        read_table(exams[role].folder / "evaluations.parquet", EVALUATIONS) for role in ("champion", "candidate")
    )
    look = look_outcome(compare(TARGET, before, after, seed=1), PLANNED[0], PLANNED, alpha)
    tables.write_stage(folder / "decide")
    arguments: dict[str, Any] = {
        "looks": (tables.write_stage(folder / "exam" / "look-1", look=look),),
        "planned": PLANNED,
        "exams": exams,
        "whole": {
            role: Artifact(folder=folder / "evaluate" / f"whole-{role}", digest=role)
            for role in (("distilled", "candidate") if whole else ())
        },
        "quizzes": {},
        "digests": {role: DIGESTS[role] for role in ("champion", "distilled", "candidate")}
        | {"start": DIGESTS["champion"]},
        "exam": exam,
        "alpha": alpha,
        "seed": 1,
    }
    decide.write(folder / "decide", **arguments | options)
    return json.loads((folder / "decide" / "decision.json").read_text())


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
