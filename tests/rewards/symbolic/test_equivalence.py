"""Comparison by math-verify in processes: its outcomes, what kills it, and that nothing of it is left behind."""

import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import psutil
import pytest

from rewards.symbolic import equivalence_worker
from rewards.symbolic.equivalence import MathWorkersError, Outcome, compare
from tests.tasks.doubles.processes import gone_within
from tests.waiting import awaited

HANGS = (r"\sin(x)^{80}\cos(x)^{80} + y", r"\frac{\sin(2x)^{80}}{2^{80}} + y")  # equal, but it takes very long
EXPLODES = ("10^{10^{10}}", r"\sqrt{2}")
PIECES = r"""
    \frac \sqrt \sin \log_ \pi \infty \cup \left( \right) \begin{pmatrix} \end{pmatrix} \\ & \pm \text{or} {1} {x}
    { } 2 x i 0 ^ _ ( ) [ ] , = <
"""
SAME = (r"\sqrt{12}", r"2\sqrt{3}")
EQUAL = [
    SAME,
    (r"1 \pm \sqrt{5}", r"1 - \sqrt{5}, 1 + \sqrt{5}"),
    (r"1.414213562", r"\sqrt{2}"),
    ("x > 2", "2 < x"),
    *((f"{number} + x", f"x + {number}") for number in range(20)),
]
DIFFERENT = [
    (r"\sqrt{12}", r"3\sqrt{2}"),
    ("x^2", "y^2"),
    ("3c", "3d"),  # math-verify's unit removal would drop both letters
    ("5t", "5"),
    ("1, 2, 3", "2"),
    (r"\pm 5", "5"),
    ("[1, 2]", "(1, 2)"),
    ("(2, 1)", "(1, 2)"),
    (r"\{1, 2\}", r"\{1, 2, 3\}"),
    ("x = 5", "y = 5"),
    ("x > 2", "x < 2"),
    ("0.0", r"\frac{\sqrt{2}}{10^{9}}"),
    (r"\frac{0}{0}", "5"),
    (r"\frac{1}{0}", r"\infty"),
    (r"\infty - \infty", "0"),
    ("5 )", "5"),
    ("5 = x = 6", "5"),
    (r"5 \approx 6", "6"),
    (r"x \ne 5", "5"),
    (r"x \ge 5", "5"),
    (r"\unknown{5}", "5"),
    ("", "5"),
    ("5", ""),
    ("\x00", "5"),
    ("\ud800", "5"),
    ("5 # 6", "5"),
    *((f"{number} + x", f"x + {number + 1}") for number in range(20)),
]


def test_equal_and_different_pairs_in_their_order() -> None:
    outcomes = compare([*EQUAL, *DIFFERENT, *EQUAL], workers=2)
    assert outcomes[: len(EQUAL)] == outcomes[-len(EQUAL) :] == ["equal"] * len(EQUAL)
    assert dict.fromkeys(DIFFERENT, "different") == dict(zip(DIFFERENT, outcomes[len(EQUAL) :], strict=False))


def test_no_expression_raises() -> None:
    chance = random.Random(0)
    letters = [*r"\{}()[]^_=<>,;.+-*/|!&0123456789xyie "]
    texts = ["".join(chance.choices(letters, k=chance.randint(0, 40))) for _ in range(60)]
    texts += [" ".join(chance.choices(PIECES.split(), k=chance.randint(1, 12))) for _ in range(60)]
    pairs = [pair for text in texts for pair in ((text, "x^2 + 1"), ("x^2 + 1", text), (text, "1, 2"))]
    assert set(compare(pairs, workers=2, seconds=5.0)) <= set(get_args(Outcome))


def test_no_process_starts_without_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert compare([]) == []


def test_pairs_that_hang_or_take_all_memory_harm_no_other() -> None:
    outcomes = compare([HANGS, SAME, EXPLODES, *EQUAL[1:]], workers=2, seconds=1.0, memory_mb=1024)
    assert outcomes[0] == "timeout"
    assert outcomes[2] in ("different", "out_of_memory", "timeout", "crashed")
    assert {outcomes[1], *outcomes[3:]} == {"equal"}


def test_a_pair_whose_worker_was_lost_gets_a_second_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(prediction: str, truth: str) -> str:
        if prediction != "fine" and not (tmp_path / prediction).exists():
            (tmp_path / prediction).touch()
            os.kill(os.getpid(), signal.SIGSTOP if prediction == "stopped" else signal.SIGKILL)
        return "equal"

    monkeypatch.setattr(equivalence_worker, "judged", judged)
    pairs = dict(enumerate([("stopped", ""), ("killed", ""), ("fine", ""), ("fine", "")]))
    outcomes = equivalence_worker.compared_twice(pairs, 2, 1.0, 2**40)
    assert outcomes == dict.fromkeys(pairs, "equal")
    assert {"stopped", "killed"} == {file.name for file in tmp_path.iterdir()}


def test_processes_that_are_stuck_are_the_graders_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.symbolic.equivalence.START_SECONDS", 0.1)
    with pytest.raises(MathWorkersError, match="stuck"):
        compare([SAME], seconds=0.1)


def test_the_callers_alarm_is_left_alone_and_any_thread_may_compare() -> None:
    signal.alarm(300)
    try:
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(compare, [SAME]).result() == ["equal"]
        assert signal.alarm(0) > 200
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("killed", ["the caller", "the script"])
def test_processes_hold_no_torch_and_no_secret_and_leave_nothing(killed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    code = f"from rewards.symbolic.equivalence import compare; compare([{HANGS!r}, {HANGS[::-1]!r}], 2, 60.0)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as caller:
        family = script_and_workers(caller.pid)
        for process in family:
            assert "torch" not in Path(f"/proc/{process}/maps").read_text()
            assert b"secret" not in Path(f"/proc/{process}/environ").read_bytes()
        os.kill(caller.pid if killed == "the caller" else family[0], signal.SIGKILL)
        assert killed == "the caller" or "math-verify's process failed: -9" in caller.communicate()[1]
    assert gone_within(10, *family)


def script_and_workers(caller: int) -> list[int]:
    """The script and its two workers, once they compare."""

    def family() -> list[int]:
        found = [process.pid for process in psutil.Process(caller).children(recursive=True)]
        return found if len(found) == 3 else []

    return awaited(family, "two workers", 60)
