r"""MATH (Hendrycks et al. 2021, arXiv:2103.03874) and its subset MATH-500 (Lightman et al. 2023, arXiv:2305.20050).

Competition problems, answered in a `\boxed{…}`.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from conf.sections.benchmark import LEVELS
from conf.storage.home import InputError
from conf.storage.log import log
from rewards.data.dataset_rows import Excluded, data_file, drop_excluded, hub_rows, read_once, read_rows
from rewards.symbolic.boxed import has_box, last_boxed
from rewards.symbolic.equivalence import MathWorkersError, Outcome, compare
from rewards.symbolic.leakage import not_an_answer
from rewards.symbolic.normalize import MathAnswer, decided, for_parser, read
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split, Verdict

HUB = "EleutherAI/hendrycks_math"
HUB_500 = "HuggingFaceH4/MATH-500"
SUBJECTS = "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra precalculus".split()
FIELDS = {"problem": str, "level": str, "type": str, "solution": str}
FIELDS_500 = {"problem": str, "level": int, "subject": str, "solution": str}
LONGEST_TRUTH = 400  # characters of a bare answer; a longer text without a box is a solution that lacks its answer
# Training problems that were published with an empty box, as number_theory/7115 and number_theory/7117.
WITHOUT_ANSWER = {"math/train/number_theory/6bf518e401", "math/train/number_theory/debc168317"}


class CompetitionMath(Benchmark):
    """12,498 problems that have an answer, 7,498 of them for training. `subset="500"` selects MATH-500, for exams only.

    `levels` chooses among "1" to "5" (None: all problems). `revision` pins a version of the hub's dataset.
    """

    name = "math"
    instruction = r"Solve the problem below. Please reason step by step, and put your final answer within \boxed{}."
    answer_line = r"The answer is $\boxed{{{}}}$."
    bounded = True

    def __init__(
        self,
        source: str | None = None,
        levels: Sequence[str] | None = None,
        subset: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.source, self.levels, self.subset, self.revision = source, levels, subset, revision
        self.splits = ("test",) if subset else ("train", "test")

    @read_once
    def problems(self, split: Split) -> list[Problem]:
        """Return a split's problems at the chosen levels, in the data's order, without those whose truth is unreadable.

        Raises InputError if the data is missing or broken, or for `train` with MATH-500, which has no training split.
        """
        problems = [_as_problem(row, split) for row in self._rows(split)]
        wanted = [each for each in problems if self.levels is None or each.level in self.levels]
        return drop_excluded(
            self, split, map(_checked, (each for each in wanted if each.problem_id not in WITHOUT_ANSWER))
        )

    def solutions(self) -> list[tuple[Problem, str]]:
        """Return the training problems, each with its solution."""
        return [(problem, problem.truth) for problem in self.problems("train")]

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        """Give a reward of 1 if the last complete box is right, else 0; None if the truth or math-verify is unusable.

        Pairs that text and numbers leave undecided go to math-verify, in child processes that end with this call.
        """
        judged = [_judged(attempt) for attempt in attempts]
        open_pairs = [for_parser(*entry) for entry in judged if isinstance(entry, tuple)]
        try:
            outcomes = iter(compare([pair for pairs in open_pairs for pair in pairs]))
        except MathWorkersError as error:
            log.error("math: %d answers are not graded: %s", len(open_pairs), error)
            failed = Score.of("grader_failed", str(error))
            return [entry if isinstance(entry, Score) else failed for entry in judged]
        verdicts = iter([_verdict([next(outcomes) for _ in pairs]) for pairs in open_pairs])
        return [
            entry if isinstance(entry, Score) else Score.of(next(verdicts), "compared as expressions")
            for entry in judged
        ]

    def _rows(self, split: Split) -> list[dict[str, Any]]:
        if self.subset and split == "train":
            raise InputError("math: MATH-500 has a test split only; to train, leave `subset` out")
        path = data_file(self.name, self.source, f"{split}.jsonl")
        if path is not None:
            rows = read_rows(path, FIELDS)
            return _math_500(rows, path.with_name("math500_ids.txt")) if self.subset else rows
        if self.subset:
            rows = hub_rows(HUB_500, None, "test", FIELDS_500, self.revision)
            return [row | {"type": row["subject"], "level": f"Level {row['level']}"} for row in rows]
        return [row for subject in SUBJECTS for row in hub_rows(HUB, subject, split, FIELDS, self.revision)]


@lru_cache(maxsize=1024)  # a group's attempts share one truth
def true_answer(truth: str) -> MathAnswer | None:
    """Return the answer in `truth`, a solution or a bare answer, in comparable form; None if there is no answer."""
    answer = last_boxed(truth)
    if answer is None and not has_box(truth) and len(truth) <= LONGEST_TRUTH:
        answer = truth
    return read(answer) if answer and read(answer).normal else None


def _as_problem(row: dict[str, Any], split: Split) -> Problem:
    """Return the row as a problem. Its id is built from its subject and text, because the hub's rows have no ids."""
    subject = row["type"].lower().replace("&", "and").replace(" ", "_")
    digest = hashlib.sha256(row["problem"].encode(errors="replace")).hexdigest()[:10]
    level = row["level"].removeprefix("Level ")
    known = level if level in LEVELS else None
    return Problem(f"math/{split}/{subject}/{digest}", "math", row["problem"], row["solution"], known, subject)


def _checked(problem: Problem) -> Problem | Excluded:
    if last_boxed(problem.truth) is None or true_answer(problem.truth) is None:
        return Excluded(problem.problem_id, "its solution has no answer in a box")
    return problem


def _math_500(rows: list[dict[str, Any]], ids: Path) -> list[dict[str, Any]]:
    """Return the rows whose ids are listed in the file `ids` (those of MATH-500), in the order of that file."""
    if not ids.is_file():
        raise InputError(f"{ids}: no such file; put the ids of MATH-500 there, one a line")
    by_id = {row.get("id"): row for row in rows}
    wanted = ids.read_text(encoding="utf-8").split()
    missing = [name for name in wanted if name not in by_id]
    if missing or not wanted:
        raise InputError(
            f"{ids}: {missing[0] if missing else 'nothing'} is not an id of the test split; copy both again"
        )
    return [by_id[name] for name in wanted]


def _verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Return `correct` if all pairs of an answer are equal, else what another pair came to."""
    outcome: Outcome = next((outcome for outcome in outcomes if outcome != "equal"), "equal")
    return "correct" if outcome == "equal" else "wrong" if outcome == "different" else outcome


def _judged(attempt: Attempt) -> Score | tuple[MathAnswer, MathAnswer]:
    """Return the score if comparing text and numbers decides it, else (answer, truth) for math-verify to compare."""
    truth = true_answer(attempt.problem.truth)
    if truth is None:
        return Score.of("grader_failed", "the truth holds no answer")
    completion, question = attempt.completion, attempt.problem.question
    if has_box(question):
        completion = completion.replace(question, " ")  # repeating the question's boxes is not an answer
    content = last_boxed(completion)
    if content is None:
        return Score.of("no_answer", r"no complete \boxed{…}")
    answer = read(content)
    equal, how = decided(answer, truth)
    if equal is not False and answer.normal != truth.normal and (reason := not_an_answer(answer, truth, question)):
        equal, how = False, reason
    if equal is None:
        return answer, truth
    return Score.of("correct" if equal else "wrong", f"answered {content[:80]!r}: {how}")
