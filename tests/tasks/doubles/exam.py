"""An engine that answers exams from a table, rows of the evaluations table, and comparisons of made-up answers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from conf.sections.benchmark import ExamPart
from models.hf.loading import load_tokenizer
from models.rollout import Rollout
from rewards.data import benchmarks
from tasks.evaluation.comparison import Comparison, compare
from tasks.evaluation.stored_answers import Answers, answer_inputs
from tasks.rollouts.verified import Player
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS
from tasks.workers import engine_process
from tests.tasks.doubles.tables import write_stage


class TableEngine:
    """Answers a prompt by the words in it, and every second sample with nothing; remembers what it was asked.

    `temperature`: that of the latest call that sampled.
    """

    def __init__(self, student: Path, answers: dict[str, str]) -> None:
        self.tokenizer: Any = load_tokenizer(student)
        self.answers = answers
        self.asked: list[str] = []  # by the last greedy call
        self.calls = 0
        self.temperature = 0.0
        self.figures: Any = None  # of the stage that asked

    def call(
        self,
        function: Callable[..., Any],
        checkpoint: Path = Path(),
        config: EngineConfig | None = None,
        prompts: Any = (),
        size: int = 1,
        **options: Any,
    ) -> Any:
        if function is engine_process.kv_tokens:  # asked in order to start it
            return 1000
        if function is engine_process.sleep:
            return None
        assert function is engine_process.sample
        self.calls += 1
        self.temperature = options["temperature"]
        asked = [self.tokenizer.decode(prompt) for prompt in prompts]
        if self.temperature == 0.0:
            assert size == 1
            self.asked = asked
        texts = [next((text for word, text in self.answers.items() if word in question), "") for question in asked]

        def rollout(prompt: list[int], text: str, sample: int) -> Rollout:
            tokens, said = len(text), "" if sample % 2 else text
            written = [1] * tokens, [0.0] * tokens, [True] * tokens
            return Rollout("", 0, sample, prompt, *written, "stop", said, checkpoint.name)

        pairs = zip(prompts, texts, strict=True)
        return [[rollout(prompt, text, sample) for sample in range(size)] for prompt, text in pairs], {}


def row(problem: str, verdict: str = "correct", sample: int = 0, **changes: Any) -> dict[str, Any]:
    """A row of the evaluations table."""
    return {
        "policy_digest": "cafe42",
        "benchmark": "math-500",
        "problem_id": problem,
        "sample": sample,
        "verdict": verdict,
        "question": f"{problem}?",
        "text": "",
        "tokens": 10,
        "finish_reason": "stop",
        "correct": None if verdict == "grader_failed" else verdict == "correct",
        **dict.fromkeys(("level", "subject", "value", "turns", "valid")),
    } | changes


SUMS = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
ANSWERS: Answers = {"a": [row("a")], "b": [row("b", "wrong")]}


def inputs_of(**changes: Any) -> dict[str, str]:
    """What stored answers depend on besides their problems. `changes`: of part, sandbox, samples, or of the player."""
    part, sandbox = changes.pop("part", SUMS), changes.pop("sandbox", SandboxConfig())
    samples, engine = changes.pop("samples", 1), None
    player = Player(Path("checkpoints/cafe42"), StudentConfig(), EngineConfig(), engine, 64)
    return answer_inputs(player._replace(**changes), part, benchmarks.configured(part), sandbox, samples)


def taken_quiz(folder: Path, solved: int, problems: int) -> Artifact:
    """A quiz of which the first problems are solved."""
    rows = [row(f"p{number}", "correct" if number < solved else "wrong") for number in range(problems)]
    return write_stage(folder, {"evaluations": (EVALUATIONS, rows)})


def evaluations(correct: Sequence[bool | None], digest: str, part: str = "target") -> pd.DataFrame:
    """As much of an evaluations table as a comparison reads."""
    return pd.DataFrame(
        {
            "policy_digest": digest,
            "benchmark": part,
            "problem_id": [f"p{index}" for index in range(len(correct))],
            "sample": 0,
            "correct": pd.array(correct, dtype="boolean"),
            "value": np.nan,
        }
    )


def compared(before: Sequence[bool | None], after: Sequence[bool | None], name: str = "target") -> Comparison:
    tables = evaluations(before, "champion", name), evaluations(after, "candidate", name)
    return compare(name, *tables, seed=1)
