"""Self-play: a student's problems are judged by rules, their truth is computed, and what they earn is known by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, GrpoConfig, StudentConfig
from conf.sections.stages import SelfPlayConfig
from conf.storage.home import InputError
from rewards.arithmetic import Arithmetic
from rewards.verifier import Attempt
from tasks.rollouts.self_play import admit, ask_for_problems, credit_questions, question_reward
from tasks.stage import Artifact
from tasks.tables import ADVANTAGES, NUMBERED, PROMPTS, PROPOSALS, ROLLOUTS, SCORES, read_table
from tests.tasks.doubles.tables import rollout, run_stage, score, write_stage

ARITHMETIC = (BenchmarkConfig(name="arithmetic"),)
GRPO = GrpoConfig(group_size=4, max_completion_tokens=32)
OF_TRAINING = [text for a in range(2, 9) for b in range(2, 9) if Arithmetic().proposed(text := f"{a} + {b} + 1")]


@pytest.mark.parametrize(
    ("text", "question", "truth"),
    [
        (" 3 * 4 + 2\n", "What is 3 * 4 + 2?", "14"),
        ("What is 3 * 4 + 2?", "What is 3 * 4 + 2?", "14"),
        ("8 / 2", "What is 8 / 2?", "4"),
        ("8 / 2 = 5\n5 + 1 = 6\n#### 6", "What is 8 / 2?", "4"),  # what it says that it comes to is not read
        ("40 / 2 * 3 - 1", "What is 40 / 2 * 3 - 1?", "59"),
    ],
)
def test_a_sum_is_a_problem_with_its_truth(text: str, question: str, truth: str) -> None:
    benchmark = Arithmetic()
    problem = benchmark.proposed(text)
    assert problem is not None
    assert (problem.question, problem.truth) == (question, truth)
    (right,) = benchmark.score([Attempt(problem, f"#### {truth}")])
    assert right.verdict == "correct"


NO_PROBLEMS = ["7", "2 + 3 * 4", "9 / 2", "8 / 0", "5 - 9", "1 + 1 + 1 + 1 + 1 + 1", "99999 + 1", "9999 * 9999"]


@pytest.mark.parametrize("text", ["", "__import__", *NO_PROBLEMS])
def test_other_texts_are_no_problems(text: str) -> None:
    assert Arithmetic().proposed(text) is None


def test_no_problem_of_the_exam_can_be_proposed() -> None:
    benchmark = Arithmetic()
    sums = [problem for problem in benchmark.problems("test") if problem.question.startswith("What is ")]
    assert len(sums) > 100
    assert not any(benchmark.proposed(problem.question) for problem in sums)


def requests(folder: Path, student: Path, sources: Sequence[BenchmarkConfig] = ARITHMETIC) -> Artifact:
    return run_stage(
        ask_for_problems,
        folder,
        sources=sources,
        config=SelfPlayConfig(proposals=8),
        student=StudentConfig(),
        checkpoint=student,
        seed="1",
    )


def proposed(folder: Path, texts: Sequence[str]) -> Artifact:
    """Write proposals, one for each request."""
    rows = [rollout(f"questioner/{group}", group, 0, text) for group, text in enumerate(texts)]
    return write_stage(folder, {"rollouts": (ROLLOUTS, rows)})


def admitted(
    tmp_path: Path, student: Path, texts: Sequence[str], count: int = 8, before: tuple[Artifact, ...] = ()
) -> tuple[Artifact, list[dict[str, Any]]]:
    """Run the stage; return it and the rows of the table of proposals, in the order of the texts."""
    stage = run_stage(
        admit,
        tmp_path / "select_prompts",
        requests=requests(tmp_path / "ask", student),
        proposals=proposed(tmp_path / "propose", texts),
        sources=ARITHMETIC,
        before=before,
        exam_questions=("What is 9 + 9 + 1?",),
        student=StudentConfig(),
        checkpoint=student,
        max_prompt_tokens=500,
        count=count,
    )
    rows: Any = read_table(stage.folder / "proposals.parquet", PROPOSALS).to_dict("records")
    return stage, rows


def test_each_request_shows_other_examples_and_numbers_begin_at_0(tmp_path: Path, student: Path) -> None:
    asked: Any = read_table(requests(tmp_path / "ask", student).folder / "prompts.parquet", PROMPTS)
    assert asked.group.tolist() == list(range(8))
    assert asked.question.nunique() == 8
    assert set(asked.kind) == {"questioner"}


def test_new_problems_are_admitted_others_have_a_reason(tmp_path: Path, student: Path) -> None:
    first, second, third = OF_TRAINING[:3]
    texts = [first, "no sum", first, "9 + 9 + 1", second, second, third, "1 - 2"]
    stage, rows = admitted(tmp_path, student, texts, count=2)
    verdicts = "admitted unreadable repeated unreadable admitted repeated surplus unreadable"
    assert " ".join(row["verdict"] for row in rows) == verdicts
    prompts: Any = read_table(stage.folder / "prompts.parquet", PROMPTS)
    assert prompts.question.tolist() == [f"What is {first}?", f"What is {second}?"]
    assert prompts.group.tolist() == [8, 9] == [row["asked_group"] for row in rows if row["verdict"] == "admitted"]
    assert stage.read_json("selection.json")["drawn"] == 2


def test_a_problem_of_an_earlier_round_is_not_new(tmp_path: Path, student: Path) -> None:
    texts = [OF_TRAINING[0], OF_TRAINING[1]] * 4
    earlier, _ = admitted(tmp_path / "1", student, texts)
    _, rows = admitted(tmp_path / "2", student, texts, before=(earlier,))
    assert {row["verdict"] for row in rows} == {"repeated"}


def test_a_copied_example_is_not_new(tmp_path: Path, student: Path) -> None:
    example = requests(tmp_path / "before", student).read_json("shown.json")[0]  # of one step: its id ends with the sum
    _, rows = admitted(tmp_path, student, [example.split("/", 3)[3]])
    assert [row["verdict"] for row in rows] == ["repeated"]


def test_a_benchmark_without_proposals_is_one_line(tmp_path: Path, student: Path) -> None:
    with pytest.raises(InputError, match="question_prompt"):
        requests(tmp_path, student, [BenchmarkConfig(name="gsm8k")])


def test_the_reward_by_hand() -> None:
    assert question_reward(0.5, 0.25) == 0.75
    assert question_reward(0.0, 0.25) == question_reward(1.0, 0.25) == -0.25


def test_the_advantages_by_hand(tmp_path: Path, student: Path) -> None:
    """Five texts: a problem solved every second time, one never, a surplus one, a text that is none, and one repeated.

    Questions that are trained on count as much as such answers, here half of those to the first problem.
    """
    half, never, surplus = OF_TRAINING[:3]
    stage, _ = admitted(tmp_path, student, [half, never, surplus, "no sum", half], count=2)
    answers = [rollout("p", group, sample, "#### 1") for group in (8, 9) for sample in range(4)]
    graded = [score("p", 8, n, float(n < 2)) for n in range(4)] + [score("p", 9, n, 0.0) for n in range(3)]
    graded.append(score("p", 9, 3, None))  # not graded: it does not count
    credits = [
        {name: row[name] for name in NUMBERED}
        | {"advantage": (0.5 if row["group"] == 8 else 0.0) if row["sample"] % 2 else None}
        for row in answers
    ]
    credited = run_stage(
        credit_questions,
        tmp_path / "credit_questions",
        prompts=stage,
        proposals=Artifact(folder=tmp_path / "propose", digest="propose"),
        answers=write_stage(tmp_path / "sample", {"rollouts": (ROLLOUTS, answers)}),
        scores=write_stage(tmp_path / "score", {"scores": (SCORES, graded)}),
        credited=write_stage(tmp_path / "credit", {"advantages": (ADVANTAGES, credits)}),
        grpo=GRPO,
    )
    share = 1.0  # both are of one kind
    rewards = [1 - share, 0 - share, -1.0, 0.0]
    mean = sum(rewards) / 4
    weight = sum(len(row["token_ids"]) for row in answers) / 4 / sum(map(len, (half, never, "no sum", half)))
    found = read_table(credited.folder / "advantages.parquet", ADVANTAGES).advantage.tolist()
    expected = [(reward - mean) * weight for reward in rewards]
    assert found == pytest.approx([*expected[:2], math.nan, *expected[2:]], nan_ok=True)
    assert credited.read_json("signal.json") == {"groups": 5, "with_signal": 4}
