"""Rehearsal: lessons also train on the student's own answers, so that the student forgets less.

Answers sampled at temperature 1 follow the student's own distribution, so training on them preserves it (Robins 1995,
"Catastrophic forgetting, rehearsal and pseudorehearsal"). Greedy answers would teach the student to repeat itself.
"""

import random
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from tasks.rollouts.verified import Player, sample_verified
from tasks.stage import stage
from tasks.tables import write_rollouts

PROMPTS = Path(__file__).with_name("everyday_prompts.txt")  # one prompt per line, written for this project


@stage(retries=2)
def rehearsal(folder: Path, *, practised: tuple[str, ...], count: int, player: Player, seed: int) -> None:
    """Write `count` answers in random order.

    Half of them answer the `practised` prompts (problems that the student has practised; if there are any), and the
    others everyday prompts. Of both, all are asked equally often, or as many as are needed, drawn at random. Truncated
    answers are kept, but have no end token.
    """
    student, chance = player.student, random.Random(seed)
    tokenizer = load_tokenizer(player.checkpoint, student.trust_remote_code)
    fitting = [prompt for prompt in practised if len(_tokens(prompt, tokenizer, student)) < player.config.max_model_len]
    known = PROMPTS.read_text(encoding="utf-8").splitlines(), fitting
    for prompts in known:
        chance.shuffle(prompts)
    shares = (count - count // 2, count // 2) if known[1] else (count, 0)
    asked = [prompt for prompts, share in zip(known, shares, strict=True) for prompt in islice(cycle(prompts), share)]
    distinct = [*dict.fromkeys(asked)]
    prompts = [_tokens(prompt, tokenizer, student) for prompt in distinct]
    each = max(Counter(asked).values(), default=1)
    groups, _ = sample_verified(player._replace(temperature=1.0), prompts, each, seed=seed)
    left = {prompt: iter(group) for prompt, group in zip(distinct, groups, strict=True)}
    answers = [next(left[prompt]) for prompt in asked]
    chance.shuffle(answers)
    write_rollouts(folder / "rollouts.parquet", answers)


def _tokens(prompt: str, tokenizer: Any, student: StudentConfig) -> list[int]:
    return prompt_tokens(tokenizer, [{"role": "user", "content": prompt}], student)
