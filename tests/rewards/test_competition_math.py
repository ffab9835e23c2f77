"""MATH: its data from a folder and from the hub, what a completion is worth, and how nobody is right by a trick."""

import json
import os
import random
from functools import partial
from pathlib import Path

import pytest

from conf.home import InputError
from rewards.competition_math import CompetitionMath, true_answer
from rewards.math_equality import MathEquality
from rewards.math_refusals import refusal
from rewards.verifier import Attempt, Problem, Score, Split
from tests.rewards.local_hub import write_dataset

needs_data = pytest.mark.skipif(
    not os.environ.get("NIGHTSCHOOL_DATA"), reason="NIGHTSCHOOL_DATA is not set: no MATH files to read"
)
SPLITS: tuple[Split, Split] = ("train", "test")


def scored(completion: str, truth: str = "5", question: str = "What is 2 + 3?") -> Score:
    [score] = CompetitionMath().score([Attempt(Problem("math/test/algebra/0", "math", question, truth), completion)])
    return score


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        (r"\boxed{5}", "correct"),
        (r"It is $\boxed{5}$, not 6.", "correct"),
        (r"\boxed{6}, no, \boxed{5}", "correct"),
        (r"\boxed{5}, no, \boxed{6}", "wrong"),
        (r"\boxed{5} or \boxed{6}", "wrong"),
        (r"\boxed{5}\boxed{6}", "wrong"),
        (r"\boxed{5} and \boxed{6", "correct"),
        (r"\boxed{5, 6}", "wrong"),
        (r"\boxed{5 \text{ or } 6}", "wrong"),
        (r"\boxed{5 \text{ or 6}}", "wrong"),
        (r"\boxed{1,2,3,4,5,6,7,8,9}", "wrong"),
        (r"\boxed{x=5}", "correct"),
        (r"\boxed{6=5}", "wrong"),
        (r"\boxed{\frac{10}{2}=5}", "correct"),
        (r"\boxed{4=6=5}", "wrong"),
        (r"\boxed{x=6=5}", "wrong"),
        (r"\boxed{5 \approx 6}", "correct"),  # one value is read, the exact one
        (r"\boxed{6 \approx 5}", "wrong"),
        (r"\boxed{5; \text{Sunday}}", "wrong"),
        (r"\boxed{5 \\ \text{odd}}", "wrong"),
        (r"\boxed{5 \quad 6}", "wrong"),
        (r"\boxed{0 \quad 5}", "wrong"),
        (r"\boxed{0 5}", "wrong"),
        (r"\boxed{5\phantom{0}}", "correct"),
        (r"\boxed{0\phantom{5}}", "wrong"),
        (r"\boxed{x>4}", "wrong"),
        (r"\boxed{x \ge 5}", "wrong"),
        (r"\boxed{\text{I don't know}}", "wrong"),
        (r"\boxed{\text{The answer is } 5}", "wrong"),
        (r"\boxed{?}", "wrong"),
        (r"\boxed{\infty}", "wrong"),
        (r"\boxed{x}", "wrong"),
        (r"\boxed{5x}", "wrong"),
        (r"\boxed{5t}", "wrong"),
        (r"\boxed{[0, 10]}", "wrong"),
        (r"\boxed{\pm 5}", "wrong"),
        (r"\boxed{2+3}", "wrong"),  # the question's own expression
        (r"\boxed{1+1+1+1+1}", "wrong"),
        (r"\boxed{\lfloor 5.5 \rfloor}", "wrong"),
        (r"\boxed{\max(1,5)}", "wrong"),
        (r"\boxed{9^{9^{9}}}", "wrong"),
        (r"\boxed{5!/24}", "wrong"),
        (r"\boxed{(5)_{1}}", "wrong"),
        (r"\boxed{2 3}", "wrong"),  # which math-verify adds
        (r"\boxed{2(3)}", "wrong"),
        (r"\boxed{5" + "0" * 30_000 + "}", "wrong"),
        (r"\boxed{" + "1+" * 40_000 + "1}", "wrong"),
        (r"\boxed{5}" + "x" * 100_000, "correct"),
        ("\\boxed{5\x00}", "wrong"),
        ("\\boxed{\ud800}", "wrong"),
        ("\ud800 \x00 \\boxed{5}", "correct"),
        ("", "no_answer"),
        ("5", "no_answer"),
        ("#### 5", "no_answer"),
        ("The answer is $5$.", "no_answer"),
        (r"\boxed{}", "no_answer"),
        (r"\boxed{5", "no_answer"),
        (r"put your final answer within \boxed{}. 5", "no_answer"),
        (r"\boxed{5} I put it within \boxed{}", "correct"),
        ("\x00" * 100_000, "no_answer"),
    ],
)
def test_what_a_completion_is_worth(completion: str, verdict: str) -> None:
    score = scored(completion)
    assert score.verdict == verdict, score.detail
    assert score.reward == float(verdict == "correct")
    assert score.parts == {"correct": score.reward}
    assert score.detail.isprintable()


@pytest.mark.parametrize(
    ("question", "truth", "answer", "verdict"),
    [
        (r"Express $0.75$ as a common fraction.", r"\frac{3}{4}", "0.75", "wrong"),
        (r"Express $0.75$ as a common fraction.", r"\frac{3}{4}", r"\frac{6}{8}", "correct"),
        (r"Simplify $\dfrac{6}{8}$.", r"\frac{3}{4}", r"\frac68", "wrong"),
        (r"Factor the following expression: $7x^2-63$.", "7(x+3) (x-3)", "7x^2 - 63", "wrong"),
        (r"Factor the following expression: $7x^2-63$.", "7(x+3) (x-3)", "7(x^2 - 9)", "correct"),
        (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}", r"\sqrt{72}", "wrong"),
        (r"Evaluate $\log_2 32$.", "5", r"\log_2 32", "wrong"),
        (r"Write $2x - y = -3$ in slope-intercept form.", "y = 2x + 3", "2x-y=-3", "wrong"),
        (r"Find $x$ where $3x + 2 = 17$.", "x = 5", "3x+2=17", "wrong"),
        (r"What is $-5 + 10$, and what is $5 - 10$?", "-5", "-5", "correct"),
        (r"If $x = -5.0$, what is $x$?", "-5", "-5.0", "correct"),
        (r"Given $(x+1)^2$ and $2x + 2$, what is their quotient?", r"\frac{x+1}{2}", r"\frac{1}{2}(x+1)", "correct"),
        (r"Which is larger, $\sqrt{10}$ or $3.1$?", r"\sqrt{10}", r"\sqrt{10}", "correct"),
        (r"Does 12.5 or 2.5 solve it?", r"\frac{5}{2}", "2.5", "wrong"),
        (r"Does 12.5 solve it?", r"\frac{5}{2}", "2.5", "correct"),
    ],
)
def test_to_repeat_the_question_is_no_answer(question: str, truth: str, answer: str, verdict: str) -> None:
    assert scored(rf"\boxed{{{answer}}}", truth, question).verdict == verdict


def test_to_repeat_a_box_of_the_question_is_no_answer() -> None:
    question = r"Which digit goes into $\boxed{5}3 = 53$?"
    assert scored(question, question=question).verdict == "no_answer"
    assert scored(rf"{question} \boxed{{5}}", question=question).verdict == "correct"


@pytest.mark.parametrize(
    "truth", ["", " ", r"\boxed{}", r"so it is \boxed{5", r"\boxed{\$}", "no box, but words " * 40]
)
def test_an_unreadable_truth_is_the_graders_failure_never_a_zero(truth: str) -> None:
    assert true_answer(truth) is None
    score = scored(r"\boxed{5}", truth)
    assert (score.reward, score.verdict) == (None, "grader_failed")


@pytest.mark.parametrize(
    "truth", [r"First \boxed{4}, then \boxed{5}.", r"\fbox{5}", "5", " 5 ", r"\frac{10}{2}", "$5$"]
)
def test_the_truth_is_a_solution_or_a_bare_answer(truth: str) -> None:
    assert scored(r"\boxed{5}", truth).verdict == "correct"
    assert scored(r"\boxed{4}", truth).verdict == "wrong"


def test_scores_come_in_the_attempts_order_with_symbols_among_them() -> None:
    problem = Problem("", "math", "", r"2\sqrt{3}")
    texts = [r"\boxed{\sqrt{12}}", "none", r"\boxed{2\sqrt3}", r"\boxed{\sqrt{13}}", r"\boxed{7}", r"\boxed{\sqrt{12}}"]
    scores = CompetitionMath().score([Attempt(problem, text) for text in texts])
    assert [score.verdict for score in scores] == ["correct", "no_answer", "correct", "wrong", "wrong", "correct"]
    assert all(score.seconds > 0 for score in scores)
    assert CompetitionMath().score([]) == []


def test_what_is_too_hard_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.competition_math.MathEquality", partial(MathEquality, seconds=1.0))
    score = scored(r"\boxed{x^{99} + y^{98} = z^{97} + \sin x}", r"2x^{99} + 2y^{98} = 2z^{97} + 2\sin x + 1")
    assert (score.verdict, score.reward) == ("timeout", 0.0)


def test_without_math_verify_texts_are_judged_and_the_rest_is_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    problem = Problem("", "math", "", r"2\sqrt{3}")
    texts = [r"\boxed{2 \sqrt 3}", r"\boxed{\sqrt{12}}", r"\boxed{\text{none}}", "none"]
    scores = CompetitionMath().score([Attempt(problem, text) for text in texts])
    assert [score.reward for score in scores] == [1.0, None, 0.0, 0.0]
    assert scores[1].verdict == "grader_failed"
    assert "ImportError: none here" in scores[1].detail


def row(answer: str = r"\boxed{5}", level: str = "Level 3", kind: str = "Algebra", problem: str = "How many?") -> dict:
    return {"problem": problem, "level": level, "type": kind, "solution": f"It is {answer}."}


def write_rows(path: Path, *rows: dict) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))


def test_the_prompt_the_level_and_the_kind(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", row(level="Level 5", kind="Counting & Probability"), row(level="Level ?"))
    benchmark = CompetitionMath(source=str(tmp_path))
    first, second = benchmark.problems("test")
    assert benchmark.prompt(first) == (
        "How many?\nPlease reason step by step, and put your final answer within \\boxed{}."
    )
    assert (first.benchmark, first.level, second.level) == ("math", "5", None)
    assert first.problem_id.startswith("math/test/counting_and_probability/")
    assert benchmark.kind(first) == first.problem_id


def test_only_the_levels_asked_for(tmp_path: Path) -> None:
    write_rows(tmp_path / "train.jsonl", *[row(level=f"Level {level}") for level in "12345?"])
    levels = [problem.level for problem in CompetitionMath(str(tmp_path), levels=["2", "4"]).problems("train")]
    assert levels == ["2", "4"]


def test_a_solution_without_an_answer_is_left_out_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        row(problem="one"),
        row("5", problem="two"),
        row(r"\boxed{}", problem="three"),
        row(r"\boxed{5", problem="4"),
    ]
    write_rows(tmp_path / "train.jsonl", *rows)
    benchmark = CompetitionMath(source=str(tmp_path))
    assert [problem.question for problem in benchmark.problems("train")] == ["one"]
    assert len(benchmark.excluded["train"]) == 3
    assert f"{benchmark.excluded['train'][0]} is excluded" in caplog.text
    assert "3 of 4 train problems are excluded" in caplog.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"problem": "?", "level": "Level 1", "type": "Algebra"}, 'line 2: the field "solution" is missing'),
        ({**row(), "level": 1}, 'line 2: the field "level" is not a text'),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: dict, said: str) -> None:
    write_rows(tmp_path / "train.jsonl", row(), line)
    with pytest.raises(InputError) as caught:
        CompetitionMath(source=str(tmp_path)).problems("train")
    assert str(caught.value).startswith(f"{tmp_path / 'train.jsonl'}, {said}")


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InputError, match=r"^math: no level 6; there are 1, 2, 3, 4, 5$"):
        CompetitionMath(levels=["6", "1"])
    with pytest.raises(InputError, match="^math: no subset 100"):
        CompetitionMath(subset="100")
    with pytest.raises(InputError, match="^math: MATH-500 has a test split only"):
        CompetitionMath(subset="500").problems("train")


def test_the_subset_needs_its_ids(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", {**row(), "id": "test/algebra/1"})
    benchmark = CompetitionMath(source=str(tmp_path), subset="500")
    with pytest.raises(InputError, match=f"^{tmp_path}/math500_ids.txt: no such file"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/2\n")
    with pytest.raises(InputError, match="math500_ids.txt: test/algebra/2 is not an id of the test split"):
        benchmark.problems("test")
    (tmp_path / "math500_ids.txt").write_text("test/algebra/1\n")
    assert len(benchmark.problems("test")) == 1


def test_the_hub_gives_the_same_problems_as_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    subjects = ["Algebra", "Counting & Probability", "Geometry", "Intermediate Algebra", "Number Theory"]
    rows = [row(kind=kind, problem=f"{kind}?") for kind in [*subjects, "Prealgebra", "Precalculus"]]
    names = [entry["type"].lower().replace("&", "and").replace(" ", "_") for entry in rows]
    hub = write_dataset(tmp_path / "set", {name: {"train": [entry]} for name, entry in zip(names, rows, strict=True)})
    monkeypatch.setattr("rewards.competition_math.HUB", hub)
    write_rows(tmp_path / "train.jsonl", *[{**entry, "id": f"train/{n}"} for n, entry in enumerate(rows)])
    from_hub = CompetitionMath().problems("train")
    assert len(from_hub) == 7
    assert from_hub == CompetitionMath(source=str(tmp_path)).problems("train")


def test_the_hubs_math_500(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    published = {"problem": "How many?", "solution": r"\boxed{5}", "answer": "5", "subject": "Algebra", "level": 3}
    hub = write_dataset(tmp_path / "set", {"default": {"test": [{**published, "unique_id": "test/algebra/1.json"}]}})
    monkeypatch.setattr("rewards.competition_math.HUB_500", hub)
    [problem] = CompetitionMath(subset="500").problems("test")
    assert (problem.question, problem.level, problem.truth) == ("How many?", "3", r"\boxed{5}")
    write_rows(tmp_path / "test.jsonl", row(r"\boxed{5}"))
    [same] = CompetitionMath(source=str(tmp_path)).problems("test")
    assert problem.problem_id == same.problem_id


@needs_data
def test_the_real_data(caplog: pytest.LogCaptureFixture) -> None:
    benchmark = CompetitionMath()
    train, test = benchmark.problems("train"), benchmark.problems("test")
    assert (len(train), len(test)) == (7498, 5000)
    assert len({problem.problem_id for problem in train + test}) == 12498
    assert benchmark.excluded == {"train": [], "test": []}
    assert not caplog.records
    hard = CompetitionMath(levels=["5"]).problems("test")
    assert len(hard) == 1324
    assert {problem.level for problem in hard} == {"5"}


@needs_data
def test_the_real_math_500() -> None:
    problems = CompetitionMath(subset="500").problems("test")
    assert len(problems) == 500
    assert {problem.problem_id for problem in problems} <= {p.problem_id for p in CompetitionMath().problems("test")}
    assert problems[0].level == "2"
    assert problems[0].question.startswith("Convert the point $(0,3)$ in rectangular coordinates to polar")


def real_problems() -> list[Problem]:
    return [problem for split in SPLITS for problem in CompetitionMath().problems(split)]


@needs_data
def test_real_truths_are_correct_against_themselves_and_wrong_against_others() -> None:
    chosen = random.Random("truths").sample(real_problems(), 1500)
    scores = CompetitionMath().score([Attempt(problem, problem.truth) for problem in chosen])
    assert {score.verdict for score in scores} == {"correct"}


@needs_data
def test_real_truths_of_other_problems_are_hardly_ever_right() -> None:
    chosen = random.Random("others").sample(real_problems(), 400)
    others = [*chosen[1:], chosen[0]]
    pairs = [
        (problem, other)
        for problem, other in zip(chosen, others, strict=True)
        if true_answer(problem.truth) != true_answer(other.truth)
    ]
    scores = CompetitionMath().score([Attempt(problem, other.truth) for problem, other in pairs])
    right = [
        (true_answer(problem.truth), true_answer(other.truth))
        for (problem, other), score in zip(pairs, scores, strict=True)
        if score.verdict == "correct"
    ]
    assert right == []
    assert {score.verdict for score in scores} <= {"correct", "wrong"}


@needs_data
@pytest.mark.full
def test_every_real_truth_is_correct_against_itself() -> None:
    problems = real_problems()
    scores = CompetitionMath().score([Attempt(problem, problem.truth) for problem in problems])
    assert [score.verdict for score in scores].count("correct") == len(problems) == 12498


@needs_data
@pytest.mark.full
def test_no_real_truth_hangs_or_breaks_math_verify() -> None:
    """Every truth that is an expression compared with its own by symbols, as if its text were not the same."""
    truths = {answer.plain for problem in real_problems() if (answer := true_answer(problem.truth)) and not answer.text}
    pairs = [(truth, truth) for truth in sorted(truths) if refusal(truth) is None]
    with MathEquality() as equality:
        outcomes = equality.compare(pairs)
    assert set(outcomes) <= {"equal", "different"}
    assert outcomes.count("equal") >= 0.98 * len(pairs)
