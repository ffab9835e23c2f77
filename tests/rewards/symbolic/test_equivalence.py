"""Comparison by math-verify in processes: its outcomes, what kills it, and that nothing of it is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.symbolic.equivalence import MathEquality, MathWorkersError, Outcome

HANGS = (r"\sin(x)^{80}\cos(x)^{80} + y", r"\frac{\sin(2x)^{80}}{2^{80}} + y")  # equal, but it takes very long
EXPLODES = ("10^{10^{10}}", r"\sqrt{2}")
PIECES = r"""
    \frac \sqrt \sin \log_ \pi \infty \cup \left( \right) \begin{pmatrix} \end{pmatrix} \\ & \pm \text{or} {1} {x}
    { } 2 x i 0 ^ _ ( ) [ ] , = <
"""
EQUAL = (r"\sqrt{12}", r"2\sqrt{3}")


@pytest.fixture(scope="module")
def equality() -> Iterator[MathEquality]:
    with MathEquality(workers=2, seconds=5.0) as shared:
        yield shared


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
        EQUAL,
        ("(x+1)^2", "x^2 + 2x + 1"),
        ("3, 1, 2", "1, 2, 3"),
        (r"(1, \frac{1}{2})", "(1, 0.5)"),
        (r"(8,\infty)\cup(-\infty,-8)", r"(-\infty,-8)\cup (8,\infty)"),
        ("2x - y + 3 = 0", "y = 2x + 3"),
        (r"1 \pm \sqrt{5}", r"1 - \sqrt{5}, 1 + \sqrt{5}"),
        (r"1.414213562", r"\sqrt{2}"),
        ("x > 2", "2 < x"),
    ],
)
def test_equal(equality: MathEquality, prediction: str, truth: str) -> None:
    assert equality.compare([(prediction, truth)]) == ["equal"]


@pytest.mark.parametrize(
    ("prediction", "truth"),
    [
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
    ],
)
def test_different(equality: MathEquality, prediction: str, truth: str) -> None:
    assert equality.compare([(prediction, truth)]) == ["different"]


@given(
    st.text(alphabet=r"\{}()[]^_=<>,;.+-*/|!&0123456789xyie ", max_size=40)
    | st.lists(st.sampled_from(PIECES.split())).map(" ".join)
)
def test_no_expression_raises(equality: MathEquality, expression: str) -> None:
    outcomes = equality.compare([(expression, "x^2 + 1"), ("x^2 + 1", expression), (expression, "1, 2")])
    assert set(outcomes) <= set(get_args(Outcome))


def test_outcomes_come_in_the_pairs_order(equality: MathEquality) -> None:
    pairs = [(f"{number} + x", f"x + {number // 2 * 2}") for number in range(40)] * 2
    assert equality.compare(pairs) == ["equal", "different"] * 40


def test_no_process_starts_without_a_pair() -> None:
    with MathEquality() as equality:
        assert equality.compare([]) == []
        assert processes(equality) == []


def test_a_pair_that_hangs_is_killed_and_the_others_are_answered() -> None:
    with MathEquality(workers=2, seconds=1.0) as equality:
        assert equality.compare([HANGS, EQUAL, HANGS, EQUAL]) == ["timeout", "equal", "timeout", "equal"]
        assert equality.compare([EQUAL]) == ["equal"]


def test_a_pair_that_takes_all_memory_harms_no_other() -> None:
    with MathEquality(workers=1, seconds=1.0, memory_mb=512) as equality:
        assert equality.compare([EXPLODES, EQUAL])[1] == "equal"
        assert equality.compare([EXPLODES])[0] in ("different", "out_of_memory", "timeout", "crashed")


def test_a_timeout_on_a_busy_machine_gets_a_second_try_alone() -> None:
    with MathEquality(workers=2) as equality:
        assert equality.compare([EQUAL]) == ["equal"]
        [worker] = processes(equality)[1:]
        os.kill(worker, signal.SIGSTOP)  # like a worker that never gets the processor
        equality.seconds = 1.0
        assert equality.compare([("x + x", "2x")]) == ["equal"]
        assert worker not in processes(equality)


def test_a_killed_worker_is_replaced(equality: MathEquality) -> None:
    assert equality.compare([EQUAL]) == ["equal"]
    for worker in processes(equality)[1:]:
        os.kill(worker, signal.SIGKILL)
    assert equality.compare([EQUAL, ("x", "2x")]) == ["equal", "different"]


def test_the_loss_of_all_processes_is_reported_and_repaired(equality: MathEquality) -> None:
    equality.compare([EQUAL])
    os.kill(processes(equality)[0], signal.SIGKILL)
    with pytest.raises(MathWorkersError, match="math-verify's processes are gone"):
        equality.compare([EQUAL] + [(f"x + {number}", "x") for number in range(5)])
    assert equality.compare([EQUAL]) == ["equal"]


def test_a_stuck_server_is_the_graders_failure(equality: MathEquality, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.symbolic.equivalence.ORDER_SECONDS", 2.0)
    monkeypatch.setattr("rewards.symbolic.equivalence.END_SECONDS", 0.2)
    equality.close()
    equality.compare([EQUAL])
    server = processes(equality)[0]
    os.kill(server, signal.SIGSTOP)  # it forks and ends no more workers
    equality._idle.clear()
    with pytest.raises(MathWorkersError, match="math-verify's processes are gone .timed out"):
        equality.compare([EQUAL])
    assert not alive(server)
    assert equality.compare([EQUAL]) == ["equal"]


def test_a_start_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('none here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with (
        MathEquality() as equality,
        pytest.raises(MathWorkersError, match="^math-verify's process did not start: ImportError: none here$"),
    ):
        equality.compare([EQUAL])


def test_the_processes_hold_no_torch_and_no_secret_and_are_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    before = descriptors()
    with MathEquality(workers=2) as equality:
        equality.compare([EQUAL, ("x", "y^2")])
        family = processes(equality)
        assert len(family) == 3
        for process in family:
            assert "torch" not in Path(f"/proc/{process}/maps").read_text()
            assert b"secret" not in Path(f"/proc/{process}/environ").read_bytes()
    assert not any(Path(f"/proc/{process}").exists() for process in family)
    assert descriptors() == before


def test_the_callers_alarm_is_left_alone(equality: MathEquality) -> None:
    signal.alarm(300)
    try:
        equality.compare([("x + 1", "1 + x")])
        assert signal.alarm(0) > 200
    finally:
        signal.alarm(0)


def test_any_thread_may_use_it(equality: MathEquality) -> None:
    equality.close()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(equality.compare, [EQUAL]).result() == ["equal"]
    assert equality.compare([("y + y", "2y")]) == ["equal"]


def test_a_killed_caller_leaves_nothing_behind() -> None:
    script = (
        "from rewards.symbolic.equivalence import MathEquality\n"
        "equality = MathEquality(workers=2)\n"
        "equality.compare([('x', '2x'), ('y', '2y')])\n"
        "print(equality._server.pid, flush=True)\n"
        f"equality.compare([{HANGS!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        server = int(caller.stdout.readline())
        family = [server, *children(server)]
        assert len(family) == 3
        time.sleep(0.5)
        caller.kill()
    until = time.monotonic() + 10
    while time.monotonic() < until and any(alive(process) for process in family):
        time.sleep(0.05)
    assert not any(alive(process) for process in family)


def processes(equality: MathEquality) -> list[int]:
    """The process that forks the workers, and the workers."""
    server = equality._server
    return [] if server is None else [server.pid, *children(server.pid)]


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))
