"""The requests to the student for new problems."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from conf.schema import BenchmarkConfig, StudentConfig
from conf.sections.stages import SelfPlayConfig
from conf.storage.home import InputError
from models.hf.loading import load_tokenizer, prompt_tokens
from rewards.data.benchmarks import configured
from rewards.verifier import Benchmark
from tasks.stage import stage
from tasks.tables import PROMPTS, Row, write_table

QUESTIONER = "questioner"  # the kind of these prompts
POOL = 400  # problems to choose the examples from


@stage()
def ask_for_problems(
    folder: Path,
    *,
    sources: tuple[BenchmarkConfig, ...],
    config: SelfPlayConfig,
    student: StudentConfig,
    checkpoint: Path,
    seed: str,
) -> None:
    """Write prompts that each ask for one new problem, and show other examples, or most texts would be the same.

    Raises InputError where no benchmark can tell what the student writes.
    """
    entry, benchmark = asking(sources)
    tokenizer, chance = load_tokenizer(checkpoint, student.trust_remote_code), random.Random(seed)
    drawn = benchmark.draw(seed, POOL)
    pool = [problem for problem in drawn if benchmark.proposed(problem.question)] or drawn
    shown, rows = set[str](), list[Row]()
    for group in range(config.proposals):
        examples = chance.sample(pool, min(config.examples, len(pool)))
        shown |= {problem.problem_id for problem in examples}
        messages = [{"role": "user", "content": benchmark.question_prompt(examples)}]
        rows.append(
            {"problem_id": f"{QUESTIONER}/{group}", "group": group, "messages": json.dumps(messages)}
            | {"prompt_token_ids": prompt_tokens(tokenizer, messages, student), "question": messages[0]["content"]}
            | {"kind": QUESTIONER, "source": "self_play", "entry": entry}
        )
    write_table(folder / "prompts.parquet", PROMPTS, rows)
    (folder / "shown.json").write_text(json.dumps(sorted(shown)))


def asking(sources: Sequence[BenchmarkConfig]) -> tuple[int, Benchmark]:
    """Return the first benchmark for which a student can write problems, and its place in the configuration."""
    for entry, source in enumerate(sources):
        benchmark = configured(source)
        if benchmark.question_prompt(()):
            return entry, benchmark
    raise InputError(
        "stages: {self_play: …}: no benchmark has `question_prompt` and `proposed`; arithmetic has, and "
        "docs/self-play.md says how one of your own gets them"
    )
