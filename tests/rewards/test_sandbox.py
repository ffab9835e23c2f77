"""The sandbox's exact verdicts, its limits, retries and refusals. Attacks: programs/test_hostile.py."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from rewards.programs import policy
from rewards.sandbox import Program, Sandbox, SandboxUnavailable

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as opened:
        yield opened


def verdict(sandbox: Sandbox, source: str, *tests: str, **options: object) -> str:
    return sandbox.run([Program(source, tests or ("assert f(1) == 2",), **options)])[0].verdict


VERDICTS = [
    ("def f(x): return x + 1", "correct"),
    ("f = lambda x: x + 1", "correct"),
    ("class f:\n    def __new__(cls, x): return x + 1", "correct"),
    ("def f(x): return x", "wrong"),
    ("def f(x): return '2'", "wrong"),
    ("def f(x): raise AssertionError", "crashed"),
    ("class Own(Exception): pass\ndef f(x): raise Own", "crashed"),
    ("def f(x): raise StopIteration", "crashed"),
    ("def f(x): raise ExceptionGroup('no', [ValueError()])", "crashed"),
    ("def f(x): raise KeyboardInterrupt", "crashed"),
    ("def f(x): return f(x)", "crashed"),
    ("def g(x): return x + 1", "crashed"),
    ("def f(x) return 2", "crashed"),
    ("raise SystemExit(0)", "crashed"),
    ("import sys\ndef f(x): sys.exit(0)", "crashed"),
    ("import os\ndef f(x): os._exit(0)", "crashed"),
    ("import os\ndef f(x): os.kill(os.getpid(), 9)", "forbidden"),
    ("import ctypes\ndef f(x): ctypes.string_at(0)", "crashed"),
    ("import numpy\ndef f(x): return 2", "crashed"),
    ("def f(x): return input()", "crashed"),
    ("def f(x): raise MemoryError", "out_of_memory"),
    ("def f(x): return [0] * 10**10", "out_of_memory"),
    ("def f(x): return open('/etc/passwd').read()", "crashed"),
    ("import socket\ndef f(x): return socket.socket()", "forbidden"),
    ("import os\ndef f(x): return os.fork()", "forbidden"),
    ("", "no_answer"),
    (" \n\t", "no_answer"),
    ("def f(x): return 2\0", "crashed"),
    ("s = '\ud800'\ndef f(x): return 2", "crashed"),
    ("#" * 2**21 + "\ndef f(x): return 2", "crashed"),
    ("\ufeffdef f(x):\r\n\treturn 2", "correct"),
    ("((" * 5000, "crashed"),
    ("words " * 17_000, "crashed"),
    ("x = " + "-" * 100_000 + "1", "crashed"),
]


@pytest.mark.parametrize(("source", "expected"), VERDICTS, ids=range(len(VERDICTS)))
def test_verdicts(sandbox: Sandbox, source: str, expected: str) -> None:
    score = sandbox.run([Program(source, ("assert f(1) == 2",))])[0]
    assert score.verdict == expected, score.detail
    assert score.reward == float(expected == "correct")
    assert score.parts == {"correct": score.reward}


@pytest.mark.parametrize(
    ("source", "test"),
    [
        ("def f(): return {1, 2}", "assert set(f()) == {2, 1}"),
        ("def f(): return (x for x in 'ab')", "assert list(f()) == ['a', 'b']"),
        ("def f(): return 0.1 + 0.2", "assert math.isclose(f(), 0.3)"),
        ("def f(g): return g(20) + 1", "assert f(lambda x: 2 * x) == 41"),
        ("def f(g): return [g(x) for x in ('a', 'bb')]", "assert f(len) == [1, 2] and f(str.upper) == ['A', 'BB']"),
        ("def f(n): return lambda x: x + n", "assert f(2)(3) == 5"),
        ("class P:\n    def __init__(s, a): s.a = a\ndef f(p): return p.a", "assert f(P(3)) == 3"),
        ("class N:\n    def __init__(s, v): s.v = v\ndef f(n): return n.n.v", "a = N(1)\na.n = N(2)\nassert f(a) == 2"),
        ("class S:\n  def __init__(s): s.x = []\n  def push(s, v): s.x.append(v)\n  def __len__(s): return len(s.x)",
         "s = S()\ns.push(4)\nassert len(s) == 1 and s.x == [4]"),
        ("def f(x): raise KeyError(x)", "try:\n    f(1)\n    assert False\nexcept KeyError:\n    pass"),
        ("class Own(ValueError): pass\ndef f(): raise Own", "try:\n    f()\n    assert False\nexcept ValueError: pass"),
        ("def f(): return open('/nowhere')", "try:\n    f()\n    assert False\nexcept OSError: pass"),
        ("from decimal import Decimal\ndef f(): return Decimal('1.10')", "assert str(f()) == '1.10'"),
        ("def f(): return 10**6000", "assert f() == 10**6000"),
        ("def f(a, /, *b, c=0, **d): return [a, b, c, d]", "assert f(1, 2, c=3, e=4) == [1, (2,), 3, {'e': 4}]"),
        ("x = {'a': [1]}", "assert x == {'a': [1]}"),
    ],
)  # fmt: skip
def test_values_and_objects_that_cross(sandbox: Sandbox, source: str, test: str) -> None:
    assert verdict(sandbox, source, test) == "correct"


@pytest.mark.parametrize(
    ("source", "tests"),
    [
        ("def f(values): return map(str, values)", ["assert f([1, 2]) == ['1', '2']"]),
        ("def f(values): values.sort()", ["values = [3, 1, 2]\nf(values)\nassert values == [1, 2, 3]"]),
        ("total = []\ndef f(x):\n    total.append(x)\n    return sum(total)", ["assert f(3) == 3"] * 2),
    ],
    ids=["an iterator is no list", "what the judge holds does not change", "state stays between tests"],
)
def test_values_that_do_not_cross(sandbox: Sandbox, source: str, tests: list[str]) -> None:
    assert verdict(sandbox, source, *tests, entry_point="f") == "wrong"


def test_setup_runs_first_in_the_judge(sandbox: Sandbox) -> None:
    program = Program("def f(x): return x", ("assert f(y) == 7",), setup="y = 7", entry_point="f")
    assert sandbox.run([program])[0].verdict == "correct"


def test_an_entry_point_may_be_named_like_a_builtin_and_a_builtin_cannot_be_replaced(sandbox: Sandbox) -> None:
    assert verdict(sandbox, "def sum(a, b): return a + b", "assert sum(1, 2) == 3", entry_point="sum") == "correct"
    cheat = "def f(x): return 0\ndef abs(x): return 0"
    assert verdict(sandbox, cheat, "assert abs(f(1) - 2) < 1", entry_point="f") == "wrong"


def test_the_kernels_limits_are_set(sandbox: Sandbox) -> None:
    source = "import resource\ndef f(name): return resource.getrlimit(getattr(resource, name))[1]"
    tests = (
        "assert f('RLIMIT_FSIZE') == 0",
        "assert f('RLIMIT_CPU') == 7",
        "assert 512 << 20 < f('RLIMIT_AS') < 2 << 30",
    )
    assert sandbox.run([Program(source, tests)])[0].verdict == "correct"


def test_every_program_sees_the_same_world(sandbox: Sandbox) -> None:
    source = "import random, time, locale\ndef f(): return [hash('a'), random.random(), time.tzname[0], __name__]"
    probe = Program(source, ("assert f() == None",))
    details = {replace(score, seconds=0.0).detail for score in sandbox.run([probe] * 3)}
    assert len(details) == 1
    assert verdict(sandbox, source, "assert f()[2:] == ['UTC', 'solution']") == "correct"
    assert verdict(sandbox, source, "random.seed(0)\nassert f()[1] == random.random()") == "correct"


def test_a_tests_random_inputs_are_reproducible_and_unpredictable(sandbox: Sandbox) -> None:
    program = Program("def f(x): return x", ("assert f(0) == random.random(), str(random.random())",))
    assert sandbox.run([program])[0].detail == sandbox.run([program])[0].detail
    replay = "import random\ndef f(): return random.random()"
    assert verdict(sandbox, replay, "assert f() == random.random()") == "wrong"


class TestLimits:
    def test_cpu_time(self, sandbox: Sandbox) -> None:
        started = time.monotonic()
        score = sandbox.run([Program("def f(x):\n    while True: pass", ("assert f(1) == 2",), seconds=0.3)])[0]
        assert score.verdict == "timeout"
        assert 0.3 <= score.seconds < 1.5
        assert time.monotonic() - started < 60

    def test_a_short_sleep_is_no_timeout(self, sandbox: Sandbox) -> None:
        assert verdict(sandbox, "import time\ndef f(x):\n    time.sleep(0.1)\n    return 2", seconds=1.0) == "correct"

    def test_waiting_for_a_core_is_not_idling(self) -> None:
        hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * (os.cpu_count() or 1))]
        try:
            with Sandbox(workers=2) as opened:
                source = "def f(x):\n    for _ in range(2_000_000): pass\n    return 2"
                scores = opened.run([Program(source, ("assert f(1) == 2",), seconds=1.0)] * 4)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        assert [score.verdict for score in scores] == ["correct"] * 4

    def test_a_value_that_the_judge_cannot_compare_in_time(self, sandbox: Sandbox) -> None:
        source = "def f(x): return range(10**15)"
        assert verdict(sandbox, source, "assert sum(f(1)) == 2", seconds=0.5) in {"timeout", "wrong"}
        assert verdict(sandbox, source, "assert list(f(1)) == [2]", seconds=0.5) == "out_of_memory"


# `turtle` and `idlelib` need a screen, `antigravity` and `this` have side effects.
IMPORTABLE = sorted(
    name
    for name in sys.stdlib_module_names
    if importlib.util.find_spec(name)
    and not name.startswith("_")
    and name not in {"antigravity", "this", "idlelib", "turtle"}
)


def test_every_module_of_the_standard_library_can_be_imported(sandbox: Sandbox) -> None:
    programs = [Program(f"import {name}\ndef f(): return 2", ("assert f() == 2",)) for name in IMPORTABLE]
    scores = sandbox.run(programs)
    assert {n: s for n, s in zip(IMPORTABLE, scores, strict=True) if s.verdict != "correct"} == {}


class TestTheGraderItself:
    @pytest.mark.parametrize("tests", [(), ("assert f(1) ==",)], ids=["none", "not Python"])
    def test_tests_that_cannot_be_run(self, sandbox: Sandbox, tests: tuple[str, ...]) -> None:
        score = sandbox.run([Program("def f(x): return 2", tests)])[0]
        assert (score.reward, score.verdict) == (None, "grader_failed")

    def test_a_worker_killed_from_outside_costs_no_verdict(self) -> None:
        slow = Program("def f(x):\n    for _ in range(3_000_000): pass\n    return 2", ("assert f(1) == 2",))
        with Sandbox(workers=2) as opened:
            outer = psutil.Process(opened.workers[0].process.pid)
            threading.Timer(0.2, lambda: outer.children()[0].kill()).start()
            scores = opened.run([slow] * 12)
            assert [score.verdict for score in scores] == ["correct"] * 12
            assert all(worker.process.pid != outer.pid for worker in opened.workers)

    def test_a_stuck_sandbox_grades_nothing_and_gives_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rewards.sandbox.MAX_STUCK", 1)
        with Sandbox(workers=1) as opened:
            monkeypatch.setattr("rewards.programs.worker.LOST_SECONDS", -26.5)  # a second, not a minute and a half
            for process in psutil.Process(opened.workers[0].process.pid).children(recursive=True):
                process.suspend()
            scores = opened.run([Program("def f(x): return 2", ("assert f(1) == 2",), seconds=0.1)] * 3)
        assert [(score.reward, score.verdict) for score in scores] == [(None, "grader_failed")] * 3
        assert [score.detail for score in scores[1:]] == ["the sandbox is stuck"] * 2


@pytest.mark.parametrize("lowest", [*range(198, 206), 500])  # many machines allow 1,024
def test_the_ruleset_may_have_any_descriptor(lowest: int) -> None:
    """It is inherited under its own number, and a night has many files open."""
    with ExitStack() as stack:
        while (number := os.open(os.devnull, os.O_RDONLY)) < lowest:
            stack.callback(os.close, number)
        os.close(number)
        with Sandbox(workers=1) as opened:
            assert verdict(opened, "def f(x): return 2") == "correct"


class TestWorkersThatCannotStart:
    """The machine has no process or descriptor left for the second one."""

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Mock]:
        started: list[Mock] = []

        def start(*_: object) -> Mock:
            if started:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            started.append(Mock())
            return started[0]

        monkeypatch.setattr("rewards.sandbox.SandboxWorker", start)
        return started

    def test_those_that_have_started_are_closed(self, started: list[Mock]) -> None:
        with pytest.raises(SandboxUnavailable, match="temporarily unavailable"), Sandbox(workers=2):
            pass
        started[0].close.assert_called_once()

    def test_one_that_cannot_be_replaced_is_closed_once(self, started: list[Mock]) -> None:
        """Closing it again would close descriptors that are no longer its own."""
        sandbox = Sandbox(workers=1)
        sandbox._try_canaries = Mock()
        with pytest.raises(SandboxUnavailable, match="temporarily unavailable"), sandbox:
            sandbox._replace(started[0])
        started[0].close.assert_called_once()


class TestRefusal:
    def test_a_bubblewrap_that_does_not_start(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        broken.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        with pytest.raises(SandboxUnavailable, match="No permissions"), Sandbox():
            pass

    def test_the_canaries_notice_a_layer_that_does_not_hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(policy, "ALLOWED", [*policy.ALLOWED, "socket"])
        with pytest.raises(SandboxUnavailable, match="does not hold"), Sandbox(workers=1):
            pass

    def test_without_landlock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def lacking(folders: object) -> int:
            raise policy.SandboxUnavailable("Landlock: not built in")

        monkeypatch.setattr(policy, "landlock_ruleset", lacking)
        with pytest.raises(SandboxUnavailable, match="Landlock"), Sandbox():
            pass
        with Sandbox(workers=1, without=("landlock",)) as opened:
            assert verdict(opened, "def f(x): return 2") == "correct"
