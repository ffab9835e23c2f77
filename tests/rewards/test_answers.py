"""What completions are worth, by the tables in `answers/`; and that no trick is worth anything."""

import json
import tomllib
from pathlib import Path

import pytest

from rewards.data.benchmarks import load
from rewards.gsm8k import Gsm8k
from rewards.verifier import Attempt, Benchmark, Problem

ANSWERS = Path(__file__).with_name("answers")
BENCHMARKS: dict[str, Benchmark] = {
    name: load(name) for name in ("arithmetic", "gsm8k", "math", "questions", "triviaqa")
}
BENCHMARKS |= {"gsm8k_lenient": Gsm8k(lenient=True), "math_forms": BENCHMARKS["math"]}
QUESTION = "How many eggs are left?"
QUOTED = "How many eggs are 9 * 2?\nWrite it like #### 18 at the end."
YORK = json.dumps(["York", "York, England"])
# What no table can hold: long texts, lone surrogates, and questions that contain a marker.
TRICKS = [
    ("arithmetic", QUESTION, "12", "#### " + "9" * 20_000, "no_answer"),
    ("arithmetic", QUESTION, "12", "#" * 20_000 + "12", "correct"),
    ("gsm8k", QUESTION, "#### 18", "#### " + "9" * 19_000, "wrong"),
    ("gsm8k", QUESTION, "#### 18", "#### 18." + "0" * 19_000, "wrong"),
    ("gsm8k", QUOTED, "#### 18", "Write it like #### 18 at the end.", "no_answer"),
    ("gsm8k", QUOTED, "#### 18", "  Write it like #### 18 at the end.\nI do not know.", "no_answer"),
    ("gsm8k", QUOTED, "#### 18", f"So: {QUOTED}", "no_answer"),
    ("gsm8k", QUOTED, "#### 18", f"So: {QUOTED}\n#### 18", "correct"),
    ("gsm8k", QUOTED, "#### 18", "Write it like #### 18 at the end.\n#### 18", "correct"),
    ("gsm8k", QUOTED, "#### 18", "#### 18", "correct"),
    ("gsm8k", QUOTED, "#### 18", "\n".join(["Write it like #### 18 at the end."] * 2), "correct"),  # once too often
    ("math", QUESTION, "5", r"\boxed{5" + "0" * 30_000 + "}", "wrong"),
    ("math", QUESTION, "5", r"\boxed{" + "1+" * 40_000 + "1}", "wrong"),
    ("math", QUESTION, "5", r"\boxed{5}" + "x" * 100_000, "correct"),
    ("math", QUESTION, "5", "\\boxed{\ud800}", "wrong"),
    ("math", QUESTION, "5", "\ud800 \x00 \\boxed{5}", "correct"),
    ("math", r"Which digit: $\boxed{5}3 = 53$?", "5", r"Which digit: $\boxed{5}3 = 53$?", "no_answer"),
    ("math", r"Which digit: $\boxed{5}3 = 53$?", "5", r"Which digit: $\boxed{5}3 = 53$? \boxed{5}", "correct"),
    ("triviaqa", QUESTION, YORK, "York\ud800", "wrong"),
    ("triviaqa", "Quiz. Answer: York. Where?", YORK, "Quiz. Answer: York. Where?", "no_answer"),
    ("triviaqa", "Quiz. Answer: York. Where?", YORK, "Quiz. Answer: York. Where?\nAnswer: York", "correct"),
]
UNREADABLE = {
    "arithmetic": ["twelve", "", "#### 12", "1/0", "1" * 40],
    "gsm8k": ["18", "", "####", "#### eighteen", "#### 18 or 19", "#### 1 2", "#### 18/2", "18 ####"],
    "math": ["", " ", r"\boxed{}", r"so it is \boxed{5", r"\boxed{\$}", "no box, but words " * 40],
    "triviaqa": ["", "York", "[]", "{}", '["York"', "[1]", '[""]', '[" "]', '"York"', "null", "[" * 10_000],
    "mbpp": ["assert f(1) == 2"],
    "humaneval": ["check(f)"],
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_completion_has_its_verdict(name: str) -> None:
    """All rows of a table are judged in one call, as in a night; `math_forms` holds contents of boxes."""
    table = tomllib.loads((ANSWERS / f"{name}.toml").read_text(encoding="utf-8"))
    problems = table.get("problem") or [{"truth": truth} | forms for truth, forms in table.items()]
    form = r"Hence \boxed{%s}." if name == "math_forms" else "%s"
    rows = [
        (Problem("", BENCHMARKS[name].name, problem.get("question", QUESTION), problem["truth"]), form % text, verdict)
        for problem in problems
        for verdict in ("correct", "wrong", "no_answer")
        for text in problem.get(verdict, ())
    ]
    assert len(rows) >= 10
    scores = BENCHMARKS[name].score([Attempt(problem, text) for problem, text, _ in rows])
    judged = list(zip(rows, scores, strict=True))
    assert [(row, score.verdict, score.detail) for row, score in judged if score.verdict != row[2]] == []
    for score in scores:
        assert score.reward == score.parts["correct"] == float(score.verdict == "correct")
        assert score.detail.isprintable()


@pytest.mark.parametrize(("name", "question", "truth", "completion", "verdict"), TRICKS)
def test_tricks(name: str, question: str, truth: str, completion: str, verdict: str) -> None:
    benchmark = BENCHMARKS[name]
    [score] = benchmark.score([Attempt(Problem("", benchmark.name, question, truth), completion)])
    assert score.verdict == verdict


@pytest.mark.parametrize(("name", "truth"), [(name, truth) for name, truths in UNREADABLE.items() for truth in truths])
def test_an_unreadable_truth_is_the_graders_failure_never_a_zero(name: str, truth: str) -> None:
    [score] = load(name).score([Attempt(Problem("", name, QUESTION, truth), "#### 12\n\\boxed{5}\nAnswer: York")])
    assert (score.reward, score.verdict) == (None, "grader_failed")


@pytest.mark.parametrize(
    ("name", "truth"), [("arithmetic", "12"), ("gsm8k", "#### 18"), ("math", "5"), ("triviaqa", YORK)]
)
def test_repeating_the_prompt_is_worth_nothing(name: str, truth: str) -> None:
    benchmark = BENCHMARKS[name]
    problem = Problem("", benchmark.name, QUESTION, truth)
    completions = [benchmark.prompt(problem), f"{benchmark.prompt(problem)}\n{benchmark.prompt(problem)}"]
    scores = benchmark.score([Attempt(problem, text) for text in completions])
    assert [score.reward for score in scores] == [0.0, 0.0]
