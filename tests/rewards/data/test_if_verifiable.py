"""Generated instructions, judged by if-verifiable's own checkers."""

import json
from importlib.util import find_spec

import pytest

from conf.schema import BenchmarkConfig
from conf.storage.home import InputError
from rewards.data.benchmarks import configured
from rewards.data.if_verifiable import INSTRUCTIONS, TOPICS, IfVerifiable
from rewards.data.instructions import TOPICS as GUARDED
from rewards.verifier import Attempt, Problem

pytestmark = pytest.mark.skipif(find_spec("if_verifiable") is None, reason="if-verifiable is not installed")


@pytest.mark.parametrize(
    ("instruction", "arguments", "followed", "not_followed"),
    [
        ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a bear\n* honey", "* a bear"),
        ("detectable_format:title", {}, "<<Bears>>\nThey eat honey.", "Bears\nThey eat honey."),
        ("keywords:existence", {"keywords": ["water"]}, "Bears like water.", "Bears like honey."),
        ("keywords:forbidden_words", {"forbidden_words": ["the"]}, "Bears like honey.", "The bears like honey."),
        ("length_constraints:number_words", {"num_words": 10, "relation": "less than"}, "Bears eat.", "bear " * 10),
        ("punctuation:no_comma", {}, "Bears eat and sleep.", "Bears eat, and sleep."),
        ("startend:end_checker", {"end_phrase": "Goodbye!"}, "Bears eat. Goodbye!", "Goodbye! Bears eat."),
        ("startend:quotation", {}, '"Bears eat honey."', "Bears eat honey."),
    ],
)
def test_an_instruction(instruction: str, arguments: dict[str, object], followed: str, not_followed: str) -> None:
    assert instruction in INSTRUCTIONS
    truth = json.dumps({"instruction": instruction, "arguments": arguments})
    problem = Problem("one", "if_verifiable", "Tell me about bears.", truth)
    scores = IfVerifiable().score([Attempt(problem, text) for text in (followed, not_followed, " ")])
    assert [(score.verdict, score.reward) for score in scores] == [("correct", 1), ("wrong", 0), ("no_answer", 0)]


@pytest.mark.parametrize("truth", ["yes", "[]", '{"instruction": "unknown", "arguments": {}}'])
def test_a_truth_that_it_cannot_read_is_the_graders_failure(truth: str) -> None:
    (score,) = IfVerifiable().score([Attempt(Problem("one", "if_verifiable", "Bears?", truth), "Bears.")])
    assert (score.verdict, score.reward) == ("grader_failed", None)


def test_its_problems_are_for_training_and_share_no_topic_with_the_guard() -> None:
    benchmark = configured(BenchmarkConfig(name="rewards.data.if_verifiable:IfVerifiable"))
    assert benchmark.draw("1", 50) == benchmark.draw("1", 50) != benchmark.draw("2", 50)
    problems = benchmark.problems("train")
    assert len({problem.question for problem in problems}) == 500
    assert {benchmark.kind(problem) for problem in problems} == {f"if_verifiable/{name}" for name in INSTRUCTIONS}
    assert 3000 < len(benchmark.draw("1", 10_000)) < 10_000
    assert not {*TOPICS} & {*GUARDED}
    with pytest.raises(InputError, match="training problems only"):
        benchmark.problems("test")
