"""A script that runs trusted programs and their tests unprotected, in a plain interpreter.

Its argument is the CPU seconds (a whole number) that a program may use. It reads a JSON list of [source, setup, tests]
from standard input and prints the indexes of those that pass. Each program runs with its tests in one module of its own
forked process, under limits. Standard library only.
"""

import json
import os
import random
import resource
import signal
import sys
from typing import NoReturn

WALL_SECONDS = 60
MEMORY_BYTES = 700 << 20


def main() -> None:
    jobs = json.load(sys.stdin)
    print(json.dumps([index for index, job in enumerate(jobs) if passes(*job, seconds=int(sys.argv[1]))]))


def passes(source: str, setup: str, tests: list[str], seconds: int) -> bool:
    """Return whether the program, in a child process, reaches the end of its tests."""
    pid = os.fork()
    if pid == 0:
        try_and_exit(source, setup, tests, seconds)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def try_and_exit(source: str, setup: str, tests: list[str], seconds: int) -> NoReturn:
    """Run the tests and exit, with status 0 if all pass."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(WALL_SECONDS)
    random.seed(0)
    try:
        module: dict[str, object] = {"__name__": "solution"}
        for text in (source, setup, *tests):
            exec(compile(text, "<program>", "exec", dont_inherit=True), module)
    except BaseException:  # sys.exit and the like do not count as a pass
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
