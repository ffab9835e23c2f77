"""When a child counts as stuck: literal figures, and what /proc says of real processes. Nothing here waits."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from tasks.workers import FIRST_LIMIT, POLL, QUIET, Heartbeat, next_limit, processor_seconds

BUSY = "while True: pass"
BUSY_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.fixture
def sleeping() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def wait_for_seconds(process: int, seconds: float) -> None:
    limit = time.monotonic() + 60
    while processor_seconds(process) < seconds:
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_limits() -> None:
    assert next_limit(None) == FIRST_LIMIT == 43_200
    assert next_limit(0.0) == next_limit(180.0) == 1800
    assert next_limit(181.0) == 1810
    assert next_limit(7200.0) == 72_000
    assert (QUIET, POLL) == (600, 5)


def test_who_does_nothing_is_stuck_after_the_quiet_time_and_not_before(sleeping: int) -> None:
    watch = Heartbeat(sleeping)
    assert [watch.complaint() for _ in range(119)] == [None] * 119
    assert watch.complaint() == "was stuck: no processor time used for 600 s"


def test_who_works_is_stuck_after_its_limit_and_not_before() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        try:
            watch = Heartbeat(process.pid, quiet=2.0, limit=2.4)
            for _ in range(4):
                wait_for_seconds(process.pid, processor_seconds(process.pid) + 0.05)
                assert watch.complaint() is None
                assert watch.still == 0
            assert watch.complaint() == "was stuck: not through after 2 s"
        finally:
            process.kill()


def test_what_idle_threads_use_is_no_sign_of_life(sleeping: int) -> None:
    """A hundredth of a second every five is less than a second in ten minutes."""
    watch = Heartbeat(sleeping)
    watch.used -= 0.9
    assert watch.complaint() is None
    assert watch.still == 5
    watch.used -= 0.11
    assert watch.complaint() is None
    assert watch.still == 0


def test_descendants_count() -> None:
    """The parent itself does nothing but wait."""
    with subprocess.Popen([sys.executable, "-c", BUSY_CHILD], start_new_session=True) as process:
        try:
            wait_for_seconds(process.pid, 1.0)
            own = psutil.Process(process.pid).cpu_times()
            assert own.user + own.system < 0.9
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_one_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert processor_seconds(process.pid) == 0
