"""The script behind `rewards.symbolic.equivalence`: imports math-verify once, and compares pairs in forked workers.

It imports nothing from this project, and its forks do not import the caller's `__main__`, which may load all of torch.
It reads a job in JSON from standard input, and writes a JSON list of outcomes to standard output. If the caller dies,
the kernel kills this process and its forks.
"""

import ctypes
import gc
import json
import logging
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from typing import Any

from antlr4 import PredictionMode
from latex2sympy2_extended import latex2sympy2
from latex2sympy2_extended.antlr_parser import PSParser
from latex2sympy2_extended.math_normalization import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify
from sympy import And, Basic, Eq, Expr, Interval, MatrixBase, N, Tuple
from sympy.core.random import seed
from sympy.logic.boolalg import Boolean

PR_SET_PDEATHSIG = 1
FORK = multiprocessing.get_context("fork")
FAILURES = ("timeout", "out_of_memory", "crashed")
TINY = 1e-60  # absolute tolerance around 0
# Only the part of math-verify's cleaning that parsing needs: its unit removal would turn both 3c and 3d into 3.
CLEANING = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
)
EXTRACTION = [LatexExtractionConfig(boxed_match_priority=-1, normalization_config=CLEANING)]
IMAGINARY = re.compile(r"(?<![A-Za-z\\])i(?![A-Za-z])")  # 2i becomes 2 i, because math-verify needs a separate i
# Pairs to compare before the first fork: workers then inherit the tables that the parser builds on first use.
WARM_UP = (
    (r"\frac{\sqrt{3}}{2}", r"\frac{3}{2\sqrt{3}}"),
    (r"x^2 + 2x + 1", r"(x+1)^2"),
    ("3, 1, 2", "1, 2, 3"),
    (r"(1, -\frac{1}{2})", "(1, -0.5)"),
    (r"(-\infty, 2) \cup [3, \infty)", r"(-\infty, 2] \cup [3, \infty)"),
    ("y = 2x + 3", "2x - y + 3 = 0"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 3 \end{pmatrix}"),
    (r"2 \pi i", r"6 + 2i"),
    (r"\log_2 5", r"\sin 30"),
    (r"1 \pm \sqrt{5}", r"1 < x \le 5"),
)


class TwoStageParser(latex2sympy2._Latex2Sympy):
    """math-verify's parser with ANTLR's two-stage prediction: SLL first, then LL if SLL fails.

    According to ANTLR's documentation, SLL gives the same tree as LL, or an error. LL alone takes three times as long.
    """

    prediction = PredictionMode.SLL

    def create_parser(self, latex_str: str) -> PSParser:
        """Return ANTLR's generated parser, set to the prediction mode of the current stage."""
        parser = super().create_parser(latex_str)
        parser._interp.predictionMode = self.prediction
        return parser

    def parse(self, latex_str: str) -> Any:
        """Parse as the parent class does, in two stages."""
        try:
            return super().parse(latex_str)
        except Exception:
            self.prediction = PredictionMode.LL
            self.var.clear()
            self.variances.clear()
            return super().parse(latex_str)


def judged(prediction: str, truth: str) -> str:
    """Compare two expressions and return `equal`, `different` or `out_of_memory`. Random choices are seeded."""
    random.seed(0)
    seed(0)
    try:
        right, answer = parsed(truth), parsed(prediction)
        if right is None or answer is None or differ(right, answer) or is_false(answer):
            return "different"
        equal = verify(right, answer, timeout_seconds=None, allow_set_relation_comp=True)
        return "equal" if equal and not mistaken(right, answer) else "different"
    except MemoryError:
        return "out_of_memory"
    except BaseException:  # math-verify's exceptions derive from BaseException, and sympy may raise anything
        return "different"


@lru_cache(maxsize=64)  # all answers of a group are compared with the same truth
def parsed(expression: str) -> Basic | MatrixBase | None:
    """Return the expression as a sympy object, or None if it cannot be parsed."""
    expressions = parse(
        f"${IMAGINARY.sub(' i ', expression)}$",
        EXTRACTION,
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,  # pyrefly: ignore[bad-argument-type]  # no alarm, as documented
    )
    return expressions[0] if expressions else None


def differ(truth: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    """Return whether two expressions have different values at a test point. This is much faster than algebra."""
    if isinstance(truth, Tuple | Interval | MatrixBase) and isinstance(answer, type(truth)):
        parts, others = _parts(truth), _parts(answer)
        return len(parts) == len(others) and any(map(differ, parts, others))
    if not (isinstance(truth, Expr) and isinstance(answer, Expr)) or truth.is_Symbol or answer.is_Symbol:
        return False
    names = sorted(truth.free_symbols | answer.free_symbols, key=str)
    point: dict[Any, Any] = {name: 0.7390851 + 0.5671433 * index for index, name in enumerate(names)}
    try:
        left: Any = truth.evalf(subs=point)
        right: Any = answer.evalf(subs=point)
        return bool(abs(left - right) > (abs(left) + abs(right)) / 1000)
    except (TypeError, ValueError, ArithmeticError):  # no numeric value at the point
        return False


def _parts(whole: Tuple | Interval | MatrixBase) -> Sequence[Any]:
    return whole.flat() if isinstance(whole, MatrixBase) else whole.args


def is_false(answer: Basic | MatrixBase) -> bool:
    """Return whether the answer equates two different numbers (`2 = 3`). math-verify would read only the last one."""
    equations = answer.args if isinstance(answer, And) else (answer,)
    return any(
        isinstance(equation, Eq) and not equation.free_symbols and differ(equation.lhs, equation.rhs)
        for equation in equations
    )


def mistaken(truth: Basic | MatrixBase, answer: Basic | MatrixBase) -> bool:
    """Return whether math-verify's `equal` is wrong, as it can be for small numbers and equations without a variable.

    math-verify compares a fixed number of decimal places, so it takes every small number for 0.0. It compares equations
    by their solutions, and an equation without a variable has none.
    """
    if truth.free_symbols or answer.free_symbols:
        return False
    if isinstance(truth, Expr) and isinstance(answer, Expr):
        difference: Any = truth - answer  # pyrefly: ignore[unsupported-operation]
        return bool(abs(N(difference)) > max(abs(N(truth)) / 1000, TINY))
    return isinstance(truth, Boolean) and truth != answer


def work(channel: Connection, memory: int, parent: int) -> None:
    """Run a worker, which receives pairs and sends back their outcomes until it is killed."""
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        channel.send_bytes(judged(*json.loads(channel.recv_bytes())).encode())


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class MathProcess:
    """A forked worker that compares one pair at a time, with `seconds` for each and `memory` bytes of address space."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds = seconds
        self.channel, theirs = FORK.Pipe()
        self.process = FORK.Process(target=work, args=(theirs, memory, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, index: int, pair: Sequence[str]) -> None:
        """Start comparing the pair that has this index in the job."""
        self.index, self.deadline = index, time.monotonic() + self.seconds
        with suppress(BrokenPipeError):  # the worker has died: `outcome` will report this
            self.channel.send_bytes(json.dumps(pair).encode())

    def outcome(self) -> str | None:
        """Return the outcome of the current pair, or None while it is still being compared."""
        try:
            if self.channel.poll():
                return self.channel.recv_bytes(64).decode()
        except (EOFError, OSError):
            return "crashed"
        return "timeout" if time.monotonic() >= self.deadline else None

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self.channel.close()


def compared(pairs: Mapping[int, Sequence[str]], workers: int, seconds: float, memory: int) -> dict[int, str]:
    """Return a dict from each pair's index to its outcome. Up to `workers` pairs are compared at a time."""
    outcomes: dict[int, str] = {}
    waiting, idle = deque(pairs), [MathProcess(seconds, memory) for _ in range(min(workers, len(pairs)))]
    busy: list[MathProcess] = []
    while waiting or busy:
        while waiting and idle:
            busy.append(idle.pop())
            busy[-1].begin(index := waiting.popleft(), pairs[index])
        wait([worker.channel for worker in busy], max(0.0, min(worker.deadline for worker in busy) - time.monotonic()))
        for worker in [*busy]:
            if (outcome := worker.outcome()) is not None:
                outcomes[worker.index] = outcome
                busy.remove(worker)
                if outcome in FAILURES:
                    worker.end()
                idle.append(MathProcess(seconds, memory) if outcome in FAILURES else worker)
    for worker in idle:
        worker.end()
    return outcomes


def compared_twice(pairs: Mapping[int, Sequence[str]], workers: int, seconds: float, memory: int) -> dict[int, str]:
    """Return a dict from each pair's index to its outcome. Failures are retried alone, in case the machine was busy."""
    outcomes = compared(pairs, workers, seconds, memory)
    for index in [index for index, outcome in outcomes.items() if outcome in FAILURES]:
        outcomes |= compared({index: pairs[index]}, 1, seconds, memory)
    return outcomes


def main() -> None:
    """Run the script; its only argument is the caller's process id."""
    end_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller
    logging.disable(logging.CRITICAL)
    latex2sympy2._Latex2Sympy = TwoStageParser
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print
    job = json.load(sys.stdin)
    for prediction, truth in WARM_UP:
        judged(prediction, truth)
    gc.freeze()
    pairs = dict(enumerate(job["pairs"]))
    outcomes = compared_twice(pairs, job["workers"], job["seconds"], job["memory"])
    json.dump([outcomes[index] for index in pairs], answers)
    answers.close()


if __name__ == "__main__":
    main()
