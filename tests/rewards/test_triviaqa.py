"""TriviaQA: the normal form of names, which is the authors' own, and the data's fields."""

import json
import re
import string
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rewards.triviaqa import TriviaQa, normalised
from rewards.verifier import Attempt, Problem
from tests.rewards.datasets import TRIVIAQA, write_rows

PUNCTUATION = {*string.punctuation, *"‘’´`"}


def verdict(completion: str, *names: str) -> str:
    [score] = TriviaQa().score([Attempt(Problem("", "triviaqa", "Who?", json.dumps(names)), completion)])
    return score.verdict


def test_names_with_a_comma_an_or_or_of_articles_and_signs_alone() -> None:
    assert verdict("Paris, Texas", "Paris, Texas") == "correct"
    assert verdict("Trick or Treat", "Trick or treat") == "correct"
    assert verdict("The The", "The The") == "correct"
    assert verdict("the", "The The") == "wrong"
    assert verdict("!!!", "!!!") == "correct"
    assert verdict("???", "!!!") == "wrong"
    assert verdict("A", "A", "The letter A") == "correct"


def official(answer: str) -> str:
    """`normalize_answer` as in the authors' evaluation script, step by step."""
    text = answer.replace("_", " ").lower()
    text = "".join(" " if letter in PUNCTUATION else letter for letter in text)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


@given(st.text() | st.text(alphabet="aA ntheTHE._-’´`'\t\nİß", max_size=40))
def test_the_normal_form_is_the_official_one(answer: str) -> None:
    assert normalised(answer) == official(answer) or official(answer) == ""


def test_a_row_becomes_a_problem_with_its_names_in_order(tmp_path: Path) -> None:
    row = TRIVIAQA | {"answer": {"aliases": ["B", "A", "B", "  "], "value": "A", "normalized_value": "a"}}
    benchmark = TriviaQa(write_rows(tmp_path / "test.jsonl", row))
    [problem] = benchmark.problems("test")
    assert problem == Problem("triviaqa/test/tc_2", "triviaqa", TRIVIAQA["question"], '["A", "B"]')
    assert "as `Answer: <answer>` on a last line.\n" in benchmark.prompt(problem)
