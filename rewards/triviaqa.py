"""TriviaQA (Joshi et al. 2017, arXiv:1705.03551), without documents: a question, and every name its answer goes by."""

import json
import logging
import re
import string
import time
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rewards.data.dataset_rows import checked, data_file, hub_rows, read_rows
from rewards.verifier import Attempt, Problem, Score, Split, Verdict

HUB = ("mandarjoshi/trivia_qa", "rc.nocontext")
HUB_SPLITS: dict[Split, str] = {"train": "train", "test": "validation"}  # the published test split has no answers
FIELDS = {"question": str, "question_id": str, "answer": dict}
INSTRUCTION = "Give a short answer, without a sentence around it, on a last line `Answer: <answer>`."
MARKER = re.compile(r"answer(?:\*\*)?:", re.IGNORECASE | re.ASCII)
ECHO = re.compile(r"answer:[ \t]*<answer>", re.IGNORECASE | re.ASCII)  # the instruction's own marker, repeated
PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
ARTICLES = re.compile(r"\b(?:a|an|the)\b")

log = logging.getLogger(__name__)


class TriviaQa:
    """138,384 training and 17,944 exam problems, from a folder of JSONL with the hub's row fields or from the hub.

    `excluded` lists, per split read, the problems that have no answer.
    """

    name = "triviaqa"

    def __init__(self, source: str | None = None, revision: str | None = None) -> None:
        self.source, self.revision = source, revision
        self.excluded: dict[Split, list[str]] = {}

    def problems(self, split: Split) -> list[Problem]:
        """All problems of a split in the data's order, without those that have no answer.

        Raises InputError where the data is missing or broken.
        """
        problems, excluded = [], []
        for row in self._rows(split):
            problem_id = f"triviaqa/{split}/{row['question_id']}"
            names = _names(row["answer"], problem_id)
            if names:
                problems.append(Problem(problem_id, self.name, row["question"], json.dumps(names, ensure_ascii=False)))
            else:
                log.warning("%s is excluded: it has no answer", problem_id)
                excluded.append(problem_id)
        self.excluded[split] = excluded
        if excluded:
            log.warning("triviaqa: %d of %d %s problems are excluded", len(excluded), len(excluded + problems), split)
        return problems

    def kind(self, problem: Problem) -> str:
        """Each problem is its own kind."""
        return problem.problem_id

    def prompt(self, problem: Problem) -> str:
        """The question, and the format of the answer."""
        return f"{problem.question}\n{INSTRUCTION}"

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """1 where the text after the last `Answer:`, else the whole, is one of the names; null without names."""
        return [_score(attempt) for attempt in attempts]

    def _rows(self, split: Split) -> list[dict[str, Any]]:
        path = data_file(self.name, f"{split}.jsonl", self.source)
        return hub_rows(*HUB, HUB_SPLITS[split], FIELDS, self.revision) if path is None else read_rows(path, FIELDS)


def normalised(answer: str) -> str:
    """The official normal form: small letters, without articles, punctuation, underscores and further spaces.

    As `normalize_answer` in the authors' triviaqa_evaluation.py. A name of nothing else (`The The`, `!!!`), of
    which that leaves nothing, keeps what it has.
    """
    lowered = answer.replace("_", " ").lower()
    without = " ".join(ARTICLES.sub(" ", lowered.translate(PUNCTUATION)).split())
    return without or " ".join(lowered.split())


@lru_cache(maxsize=1024)  # a group has one truth
def true_names(truth: str) -> frozenset[str]:
    """The normal forms of a JSON list of names; empty where the truth is no such list."""
    try:
        names = json.loads(truth)
    except (ValueError, RecursionError):
        return frozenset()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return frozenset()
    return frozenset(normalised(name) for name in names) - {""}


def _names(answer: dict[str, Any], where: str) -> list[str]:
    """Every name of the answer once, in the data's order."""
    aliases = checked(answer, {"aliases": list}, f"{where}, answer")["aliases"]
    candidates = [answer.get("value"), *aliases]
    return list(dict.fromkeys(name for name in candidates if isinstance(name, str) and normalised(name)))


def _score(attempt: Attempt) -> Score:
    started = time.perf_counter()
    names = true_names(attempt.problem.truth)
    if not names:
        return Score(None, "grader_failed", "the truth is not a JSON list of names")
    answer = _answer(attempt)
    normal = normalised(answer)
    verdict: Verdict = "no_answer" if not normal else "correct" if normal in names else "wrong"
    correct = float(verdict == "correct")
    detail = f"answered {answer.strip()[:80]!r}" if normal else "no answer"
    return Score(correct, verdict, detail, {"correct": correct}, time.perf_counter() - started)


def _answer(attempt: Attempt) -> str:
    """The text after the last marker, or all of it; markers that the prompt itself contains do not count."""
    text, question = attempt.completion, attempt.problem.question
    if MARKER.search(question):
        text = text.replace(question, " ")
    text = ECHO.sub(" ", text)
    markers = deque(MARKER.finditer(text), maxlen=1)
    return text[markers[0].end() :] if markers else text
