"""TriviaQA (Joshi et al. 2017, arXiv:1705.03551), without its documents: questions and their accepted answers."""

import json
import re
import string
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rewards.data.dataset_rows import Excluded, checked, data_file, drop_excluded, hub_rows, read_once, read_rows
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

HUB = ("mandarjoshi/trivia_qa", "rc.nocontext")
HUB_SPLITS: dict[Split, str] = {"train": "train", "test": "validation"}  # the published test split has no answers
FIELDS = {"question": str, "question_id": str, "answer": dict}
MARKER = re.compile(r"answer(?:\*\*)?:", re.IGNORECASE | re.ASCII)
ECHO = re.compile(r"answer:[ \t]*<answer>", re.IGNORECASE | re.ASCII)  # the instruction's placeholder, copied
MARKS = f"{string.punctuation}‘’´`"
PUNCTUATION = str.maketrans(MARKS, " " * len(MARKS))
ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class TriviaQa(Benchmark):
    """138,384 training and 17,944 exam problems, from the hub or from a folder of JSONL files with the hub's fields."""

    name = "triviaqa"
    instruction = "Give a short answer, without a sentence around it, as `Answer: <answer>` on a last line."
    answer_line = "Answer: {}"
    truth_is_list = True
    bounded = True

    def __init__(self, source: str | None = None, revision: str | None = None) -> None:
        self.source, self.revision = source, revision

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems that have answers, in order. Raises InputError if the data is missing or broken."""
        file = data_file(self.name, self.source, f"{split}.jsonl")
        rows = read_rows(file, FIELDS) if file else hub_rows(*HUB, HUB_SPLITS[split], FIELDS, self.revision)
        return drop_excluded(self, split, (_as_problem(row, split) for row in rows))

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 if an accepted name follows the last `Answer:`, else 0; None if the truth has no names.

        A completion without `Answer:` is graded as a whole.
        """
        names = true_names(attempt.problem.truth)
        if not names:
            return Score.of("grader_failed", "the truth is not a JSON list of names")
        answer = answer_of(attempt)
        normal = normalised(answer)
        if not normal:
            return Score.of("no_answer", "no answer")
        return Score.of("correct" if normal in names else "wrong", f"answered {answer.strip()[:80]!r}")


def normalised(answer: str) -> str:
    """Return an answer's official normal form: lower case, without articles, punctuation, underscores or extra spaces.

    Follows `normalize_answer` in the authors' triviaqa_evaluation.py. A name that would become empty (`The The`,
    `!!!`) keeps its articles and punctuation.
    """
    lowered = answer.replace("_", " ").lower()
    stripped = " ".join(ARTICLES.sub(" ", lowered.translate(PUNCTUATION)).split())
    return stripped or " ".join(lowered.split())


@lru_cache(maxsize=1024)  # a group's attempts share one truth
def true_names(truth: str) -> frozenset[str]:
    """Return the normal forms of the names in `truth`, a JSON list. Return an empty set if it is not such a list."""
    return frozenset(normalised(name) for name in names_in(truth)) - {""}


def names_in(truth: str) -> list[str]:
    """Return the names in `truth`, a JSON list of texts, as they are written. Empty if it is not such a list."""
    try:
        names = json.loads(truth)
    except (ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def _as_problem(row: Mapping[str, Any], split: Split) -> Problem | Excluded:
    problem_id = f"triviaqa/{split}/{row['question_id']}"
    answer = checked(row["answer"], {"aliases": list}, f"{problem_id}, answer")
    candidates = [answer.get("value"), *answer["aliases"]]
    names = list(dict.fromkeys(name for name in candidates if isinstance(name, str) and normalised(name)))
    if not names:
        return Excluded(problem_id, "it has no answer")
    return Problem(problem_id, "triviaqa", row["question"], json.dumps(names, ensure_ascii=False))


def answer_of(attempt: Attempt) -> str:
    """Return the text after the last marker that was not copied from the prompt, or all text if there is none."""
    text, question = attempt.completion, attempt.problem.question
    if MARKER.search(question):
        text = text.replace(question, " ")
    text = ECHO.sub(" ", text)
    markers = deque(MARKER.finditer(text), maxlen=1)
    return text[markers[0].end() :] if markers else text
