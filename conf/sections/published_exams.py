"""Build an exam from benchmark names, outside any night."""

import difflib
from collections.abc import Sequence
from typing import get_args

from conf.schema import NightConfig
from conf.sections.benchmark import BenchmarkName, ExamPart
from conf.storage.home import InputError

# Each benchmark's published exam (for TriviaQA, the first 1,000 of 17,944 problems), and its token limit per answer.
PUBLISHED: dict[str, tuple[ExamPart, int]] = {
    "arithmetic": (ExamPart(benchmark="arithmetic"), 64),
    "gsm8k": (ExamPart(benchmark="gsm8k"), 512),
    "math": (ExamPart(benchmark="math", subset="500"), 1024),
    "mbpp": (ExamPart(benchmark="mbpp"), 512),
    "humaneval": (ExamPart(benchmark="humaneval"), 512),
    "triviaqa": (ExamPart(benchmark="triviaqa", problems=1000), 64),
}
PROMPT_TOKENS = 1024  # room for a question, beside the published token limit of its answer


def with_exam(config: NightConfig, names: Sequence[str], problems: int | None = None) -> NightConfig:
    """Return the configuration with an exam of the named parts, each with at most `problems` problems (None: no limit).

    A name stands for a part of the configured exam, or for a benchmark: every configured part that uses the benchmark
    or else its published exam, with token limits raised to fit. Raises InputError for unknown names.
    """
    parts = list(dict.fromkeys(part for name in names for part in _parts(config, name)))
    published = [PUBLISHED[part.benchmark][1] for part in parts if part not in config.exam.parts]
    room = max([config.exam.max_completion_tokens, *published])
    if problems is not None:
        parts = [part.model_copy(update={"problems": min(problems, part.problems or problems)}) for part in parts]
    only_these = {"target": parts[0], "guards": tuple(parts[1:]), "max_completion_tokens": room}
    exam = config.exam.model_copy(update=only_these)
    longest = config.engine.max_model_len
    if room > config.exam.max_completion_tokens:
        longest = max(longest, room + PROMPT_TOKENS)
    engine = config.engine.model_copy(update={"max_model_len": longest})
    return config.model_copy(update={"exam": exam, "engine": engine})


def _parts(config: NightConfig, name: str) -> list[ExamPart]:
    configured = [part for part in config.exam.parts if name in (part.name, part.benchmark)]
    if configured:
        return configured
    if name not in PUBLISHED:
        known = sorted({*PUBLISHED, *(part.name for part in config.exam.parts)})
        if name in get_args(BenchmarkName):
            raise InputError(
                f"--benchmarks: {name} has no published exam: name a configuration whose exam asks it; those that have "
                f"one are {', '.join(known)}"
            )
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"--benchmarks: unknown benchmark {name!r}; {hint}known are {', '.join(known)}")
    return [PUBLISHED[name][0]]
