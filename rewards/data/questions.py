"""Your own questions: one file with a question and its answer in each row."""

import csv
import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from conf.storage.home import InputError
from rewards.data.dataset_rows import Excluded, drop_excluded, read_once, read_rows
from rewards.symbolic.numbers import MINUS, numbers
from rewards.triviaqa import MARKER, TriviaQa, answer_of, names_in
from rewards.verifier import Attempt, Problem, Score, Split

NUMBER = re.compile(rf"[{MINUS}+]?\s?[$€£]?\s?(\.?[0-9][0-9.,]*)\s?[$€£%]?")
ARTICLE = re.compile(r"^(?:a|an|the) ")
MARKS = "*`"  # of Markdown
OUTER = " .,;:!?\"'()[]“”‘’" + MARKS
SIGNS = re.compile(r"[$€£%]")
OTHER_MARKERS = re.compile(r"####|\banswer is:?", re.IGNORECASE | re.ASCII)  # what students have learned elsewhere
PLAIN = str.maketrans({"’": "'", "‘": "'", "\N{NON-BREAKING HYPHEN}": "-"})
CODE = re.compile(r"0[0-9]")  # 007 is not 7
EXAM = 4  # of every four questions, one is for the exam


class Questions(TriviaQa):
    """The rows of a `.csv`, `.jsonl` or `.json` file, with the columns `question`, `answer` and, if known, `solution`.

    An answer is a text, a number, or (in JSON) a list of texts of which each is accepted. About a quarter of the
    questions, chosen by a hash of the question, are exam problems. The others are taught by their solutions. Each is
    asked as it is, without an instruction, as it will be asked when the model serves.
    """

    name = "questions"
    instruction = ""

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

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 if the text after the last `Answer:` reads like a true answer (see `same`), else 0.

        Without `Answer:`, the whole completion or what follows its last `####` or `answer is` counts. The reward is
        None if the truth has no names.
        """
        names = names_in(attempt.problem.truth)
        if not names:
            return Score.of("grader_failed", "the truth is not a JSON list of names")
        answer = answer_of(attempt).strip()
        if not answer:
            return Score.of("no_answer", "no answer")
        read = [answer] if MARKER.search(attempt.completion) else [answer, OTHER_MARKERS.split(answer)[-1]]
        correct = any(same(text, name) for text in read for name in names)
        return Score.of("correct" if correct else "wrong", f"answered {answer[:80]!r}")

    def _rows(self) -> list[dict[str, Any]]:
        if self.source is None:
            raise InputError("questions: `source` is missing; name the file with your questions and answers")
        file = Path(self.source)
        if not file.is_file():
            raise InputError(f"{file}: no such file; correct `source`, which names the file with your questions")
        is_csv = file.suffix.lower() == ".csv"
        rows = _csv_rows(file) if is_csv else read_rows(file, {"question": str})
        for number, row in enumerate(rows, 2 if is_csv else 1):
            if None in row:
                raise InputError(f"{file}, row {number}: more fields than columns; put a text with a comma in quotes")
            if not str(row.get("question", "")).strip() or not _answers(row):
                has = ", ".join(name for name, value in row.items() if value)
                raise InputError(f"{file}, row {number}: every row needs a `question` and an `answer`; there is: {has}")
        return rows


def _csv_rows(file: Path) -> list[dict[str, Any]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows: list[dict[str, Any]] = list(csv.DictReader(lines, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read ({error}); correct the file, or `source`") from error
    if not rows:
        raise InputError(f"{file}: holds no rows; a header and a row for each question are needed")
    return rows


def _as_problem(row: Mapping[str, Any]) -> Problem:
    question, names = str(row["question"]).strip(), _answers(row)
    digest = hashlib.sha256(question.encode()).hexdigest()
    split = "train" if int(digest, 16) % EXAM else "test"
    return Problem(f"questions/{split}/{digest[:16]}", "questions", question, json.dumps(names, ensure_ascii=False))


def _answers(row: Mapping[str, Any]) -> list[str]:
    answer = row.get("answer")
    texts = [str(each).strip() for each in (answer if isinstance(answer, list) else [answer]) if each is not None]
    return [text for text in texts if text]


def _solution(row: Mapping[str, Any]) -> str:
    return "\n".join([*filter(None, [str(row.get("solution") or "").strip()]), f"Answer: {_answers(row)[0]}"])


def reading(answer: str) -> Fraction | str:
    """Return a number's value (1,000 is 1000), or any other text without case, article and outer punctuation."""
    short = " ".join(_plain(answer).split()).strip(MARKS)
    bare = short.lstrip(OUTER.replace(".", "")).rstrip(OUTER)  # .5 keeps its point
    bare = bare[1:-1] if bare.startswith("$") and bare.endswith("$") else bare  # as in LaTeX
    if (number := NUMBER.fullmatch(bare)) and not CODE.match(bare):
        (value,) = numbers(("-" if bare[0] in MINUS else "") + number[1])
        return bare if value is None else value  # None: a date, a version, a decimal comma
    return ARTICLE.sub("", short.lower().strip(OUTER)) or short


def _plain(answer: str) -> str:
    """Return the text with plain apostrophes, hyphens and dollar signs, and composed letters."""
    return unicodedata.normalize("NFC", answer).translate(PLAIN).replace("\\$", "$")


def same(answer: str, truth: str) -> bool:
    """Return whether two answers read alike. A currency or percent sign may be left out, but must not differ."""
    signs = [set(SIGNS.findall(text.strip(OUTER))) for text in (answer, truth)]
    conflict = all(signs) and signs[0] != signs[1]
    return reading(answer) == reading(truth) and not conflict
