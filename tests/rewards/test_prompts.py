"""What all prompts of a benchmark begin with: long enough for the engine's cache, which keeps whole blocks."""

import importlib.util
from itertools import takewhile
from typing import Any, get_args

import pytest

from conf.schema import StudentConfig
from conf.sections.benchmark import BenchmarkName
from models.engine.environment import CPU_BLOCK
from models.hf.lean import AutoTokenizer
from models.hf.loading import prompt_tokens
from models.hf.starter import PACKAGE, STARTER_FILE
from rewards.data.benchmarks import load
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Problem

QUESTIONS = ("What is 7 + 5?", "def twice(x):")
PROGRAM = ProgramTests("", ("assert twice(2) == 4",), "twice").truth()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    package = importlib.util.find_spec(PACKAGE)
    assert package is not None
    assert package.submodule_search_locations
    return AutoTokenizer.from_pretrained(package.submodule_search_locations[0], gguf_file=STARTER_FILE)


@pytest.mark.full
def test_the_beginning_fills_a_block_of_the_cache(tokenizer: Any) -> None:
    """Barely: where nothing is cached, each of its tokens costs. Own questions are asked as they are."""
    begun = {}
    for name in set(get_args(BenchmarkName)) - {"instructions", "questions", "ants"}:
        asked = [load(name).prompt(Problem("", name, question, PROGRAM)) for question in QUESTIONS]
        student = StudentConfig(source="starter", system="")
        pair = [prompt_tokens(tokenizer, [{"role": "user", "content": text}], student) for text in asked]
        begun[name] = len([*takewhile(lambda tokens: tokens[0] == tokens[1], zip(*pair, strict=False))])
    assert begun == dict.fromkeys(begun, CPU_BLOCK)
