"""Anchors: the champion's answers to everyday questions, which measure how far the day copy drifts from it."""

import json
from importlib.resources import files
from pathlib import Path

from conf.storage.durable import make_folder, read_json, write_atomically
from conf.storage.home import Home
from flows.teaching.engine import Engine

COUNT, MAX_TOKENS = 8, 12  # questions, and tokens per answer: every lesson computes all of them


def anchors(home: Home, engine: Engine) -> list[tuple[str, str]]:
    """Return everyday questions with the champion's greedy answers, which are cached under the home."""
    file = _file(home, engine.champion)
    if not file.exists():
        lines = files("tasks.distillation").joinpath("everyday_prompts.txt").read_text(encoding="utf-8").splitlines()
        questions = sorted(lines, key=len)[:COUNT]
        answers = engine.greedy_answers(questions, MAX_TOKENS)
        make_folder(file.parent, 0o700)
        write_atomically(file, json.dumps(list(zip(questions, answers, strict=True))))
    return known_anchors(home, engine.champion)


def known_anchors(home: Home, champion: Path) -> list[tuple[str, str]]:
    """Return a champion's cached anchors, or an empty list if it was never taught by day."""
    return [(question, answer) for question, answer in read_json(_file(home, champion), [])]


def _file(home: Home, champion: Path) -> Path:
    return home.root / "teaching" / f"anchors-{champion.name}.json"
