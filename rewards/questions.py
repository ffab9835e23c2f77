"""Your own questions: one file with a question and its answer in each row."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from conf.storage.home import InputError
from rewards.data.dataset_rows import Excluded, drop_excluded, read_once, read_rows
from rewards.symbolic.numbers import numbers
from rewards.triviaqa import TriviaQa, answer_of, names_in, normalised
from rewards.verifier import Attempt, Problem, Score, Split

LETTER = re.compile(r"[^\W\d_]")
EXAM = 4  # of every four questions, one is for the exam


class Questions(TriviaQa):
    """The rows of a `.csv`, `.jsonl` or `.json` file, with the columns `question`, `answer` and, if known, `solution`.

    An answer is a text, a number, or (in JSON) a list of texts of which each is accepted. About a quarter of the
    questions, chosen by a hash of the question, are exam problems. The others are taught by their solutions.
    """

    name = "questions"

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems in the file's order. Raises InputError if the file is missing, broken or small."""
        found: dict[str, Problem | Excluded] = {}
        for row in self._rows():
            problem = _as_problem(row)
            twice = Excluded(problem.problem_id, "it is asked twice")
            found[problem.problem_id] = twice if problem.problem_id in found else problem
        chosen = [each for name, each in found.items() if name.startswith(f"questions/{split}/")]
        if not chosen:
            raise InputError(f"{self.source}: too few questions: none of them is for the {split} split; add some")
        return drop_excluded(self, split, chosen)

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return the training problems with their solutions; without a solution, with just the answer."""
        problems = {problem.problem_id: problem for problem in self.problems("train")}
        rows = ((problems.get(_as_problem(row).problem_id), row) for row in self._rows())
        return [(problem, _solution(row)) for problem, row in rows if problem]

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Grade as TriviaQA does, but compare numbers by their value: 1,000 is 1000."""
        return [_by_value(attempt) or score for attempt, score in zip(attempts, super().score(attempts), strict=True)]

    def _rows(self) -> list[dict[str, Any]]:
        if self.source is None:
            raise InputError("questions: `source` is missing; name the file with your questions and answers")
        file = Path(self.source)
        if file.suffix != ".csv":
            return read_rows(file, {"question": str})
        try:
            table = pd.read_csv(file, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read ({error}); correct the file, or `source`") from error
        return table.to_dict("records")  # pyright: ignore[reportReturnType]


def _as_problem(row: Mapping[str, Any]) -> Problem:
    question, names = str(row.get("question", "")).strip(), _answers(row)
    if not question or not names:
        raise InputError(
            f"{json.dumps(dict(row))[:120]}: every row needs a `question` and an `answer`; correct the file"
        )
    digest = hashlib.sha256(question.encode()).hexdigest()
    split = "train" if int(digest, 16) % EXAM else "test"
    return Problem(f"questions/{split}/{digest[:16]}", "questions", question, json.dumps(names, ensure_ascii=False))


def _answers(row: Mapping[str, Any]) -> list[str]:
    answer = row.get("answer", "")
    texts = [str(each).strip() for each in (answer if isinstance(answer, list) else [answer])]
    return [text for text in texts if normalised(text)]


def _solution(row: Mapping[str, Any]) -> str:
    return "\n".join([*filter(None, [str(row.get("solution") or "").strip()]), f"Answer: {_answers(row)[0]}"])


def _by_value(attempt: Attempt) -> Score | None:
    """Return the score of an answer with the value of a true number, or None if it has none."""
    names = [name for name in names_in(attempt.problem.truth) if not LETTER.search(name)]
    true = [value for name in names if len(values := list(numbers(name))) == 1 for value in values]
    given = list(numbers(answer_of(attempt))) if true else []
    return Score.of("correct", f"answered {given[0]}") if len(given) == 1 and given[0] in true else None
