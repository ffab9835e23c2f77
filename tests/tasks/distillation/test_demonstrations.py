"""A teacher's episodes as examples: what is learned of them, and what is only read or played."""

import json
from itertools import compress
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer
from models.lessons.preference_data import EpisodeExample
from rewards.environments.episodes import checked_reset
from tasks.distillation.demonstrations import Demonstrations
from tasks.distillation.trace_filter import Trace
from tests.rewards.countdown import Countdown


@pytest.mark.parametrize(
    ("turns", "learned"),
    [
        (["3", "2", "1"], ["3", "2", "1"]),
        (["3", {"content": "2", "weight": 0}, {"content": "1", "weight": 1}], ["3", "1"]),
    ],
)
def test_a_turn_is_learned_unless_its_weight_is_0(student: Path, turns: list[Any], learned: list[str]) -> None:
    tokenizer, (_, tokens, mask, windows) = load_tokenizer(student), demonstrated(student, turns, 512)
    assert not windows
    assert len(tokens) == len(mask)
    end = tokenizer.eos_token
    assert tokenizer.decode([*compress(tokens, mask)]) == "".join(f"{text}{end}" for text in learned)
    assert all(f"Next: {number}" in tokenizer.decode(tokens) for number in (2, 1))


def demonstrated(student: Path, turns: list[Any], most: int) -> EpisodeExample:
    countdown = Countdown()
    problem = next(problem for problem in countdown.problems("train") if problem.level == str(len(turns)))
    messages = [{"role": "user", "content": checked_reset(countdown, problem)[1]}]
    trace = Trace(messages, json.dumps(turns), "dataset", "countdown", None, f"countdown:{problem.problem_id}")
    return Demonstrations(countdown, load_tokenizer(student), StudentConfig(), most).example(trace)


def test_an_episode_of_no_known_problem_cannot_be_learned(student: Path) -> None:
    number = Countdown().problems("train")[0].problem_id
    unknown = Trace([{"role": "user", "content": "?"}], '["1"]', "me", "countdown", None, f"2026-11-22.jsonl:{number}")
    with pytest.raises(LookupError):  # the lesson leaves it out
        Demonstrations(Countdown(), load_tokenizer(student), StudentConfig(), 512).example(unknown)


def test_a_long_episode_is_learned_in_several_contexts(student: Path) -> None:
    turns = [str(number) for number in range(7, 0, -1)]
    whole = demonstrated(student, turns, 512)
    most = whole.longest * 2 // 3
    cut = demonstrated(student, turns, most)
    assert cut[:3] == whole[:3]
    assert cut.windows
    assert len(whole.prompt) < cut.longest <= most
