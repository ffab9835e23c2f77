"""A benchmark of instructions that a program can verify (after IFEval, Zhou et al. 2023, arXiv:2311.07911).

To use it, `pip install -e '.[environments]'`, and configure
`{name: "rewards.data.if_verifiable:IfVerifiable", weight: 0.2}`.
"""

import importlib
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from conf.storage.home import InputError
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

WORDS = ("always", "bright", "friend", "garden", "little", "morning", "quiet", "together", "water", "winter")
ENDINGS = ("That is all.", "Thank you for reading.", "I hope this helps.", "Goodbye!")
# IFEval's instructions that a small student sometimes follows and that need no extra data, with their arguments.
INSTRUCTIONS: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
    **dict.fromkeys(("detectable_format:title", "punctuation:no_comma", "startend:quotation"), lambda chance: {}),
    "detectable_format:number_bullet_lists": lambda chance: {"num_bullets": chance.randint(2, 4)},
    "keywords:existence": lambda chance: {"keywords": [chance.choice(WORDS)]},
    "keywords:forbidden_words": lambda chance: {"forbidden_words": [chance.choice(("the", "and", "is", "of"))]},
    "length_constraints:number_words": lambda chance: {
        "num_words": chance.choice((10, 15, 20)),
        "relation": "less than",
    },
    "startend:end_checker": lambda chance: {"end_phrase": chance.choice(ENDINGS)},
}
REQUESTS = ("Write a sentence about {}.", "Tell me about {}.", "Describe {}.", "Ask me something about {}.")
# The benchmark `instructions`, which checks that training on other tasks costs no skills, shares none of these topics.
TOPICS = (
    "apples", "bridges", "bears", "candles", "castles", "chess", "clouds", "deserts", "farms", "fish", "glass",
    "hats", "honey", "ice", "jokes", "keys", "lakes", "maps", "markets", "mice", "painting", "paper", "pianos",
    "planets", "potatoes", "shoes", "snow", "soup", "stars", "tea", "teachers", "tools", "towers", "trees", "wind",
)  # fmt: skip


class IfVerifiable(Benchmark):
    """Some 3,800 training problems, each with one instruction, and no exam problems.

    Raises InputError if the package if-verifiable (Apache-2.0), whose checkers grade the answers, is not installed.
    """

    name = "if_verifiable"
    splits = ("train",)

    def __init__(self, source: str | None = None) -> None:
        try:
            self.checkers = importlib.import_module("if_verifiable.ifeval.instructions_registry").INSTRUCTION_DICT
        except ImportError as error:
            raise InputError("if_verifiable: its package is missing: pip install -e '.[environments]'") from error

    def problems(self, split: Split) -> list[Problem]:
        """Return 500 training problems. Raises InputError for `test`."""
        if split != "train":
            raise InputError("if_verifiable: it has training problems only; name another benchmark in exam")
        return self.draw("0", 500)

    def kind(self, problem: Problem) -> str:
        """Return the names of the benchmark and the instruction, as in `if_verifiable/punctuation:no_comma`."""
        return f"{self.name}/{problem.level}"

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 if the answer follows its instruction, else 0. An empty answer counts as `no_answer`."""
        answer = attempt.completion.strip()
        if not answer:
            return Score.of("no_answer")
        try:
            asked = json.loads(attempt.problem.truth)
            checker = self.checkers[asked["instruction"]](asked["instruction"])
            checker.build_description(**asked["arguments"])
        except (ValueError, TypeError, KeyError):
            return Score.of("grader_failed", "the truth is not JSON of instruction and arguments")
        return Score.of("correct" if checker.check_following(answer) else "wrong")

    def draw(self, seed: str, count: int) -> list[Problem]:
        """Return `count` different problems or, if that is most of them, fewer. They depend only on the seed."""
        chance = random.Random(f"{self.name} {seed}")
        found: dict[str, Problem] = {}
        for _ in range(3 * count):
            instruction = chance.choice(list(INSTRUCTIONS))
            arguments = INSTRUCTIONS[instruction](chance)
            request = chance.choice(REQUESTS).format(chance.choice(TOPICS))
            described = self.checkers[instruction](instruction).build_description(**arguments)
            truth = json.dumps({"instruction": instruction, "arguments": arguments}, sort_keys=True)
            question = f"{request} {described}"
            found[question] = Problem(f"{self.name}/{question}", self.name, question, truth, instruction)
        return list(found.values())[:count]
