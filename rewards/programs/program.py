"""What the sandbox is asked to judge."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """An untrusted source and the asserts that it must pass.

    `setup` runs before the tests, in the judge. `entry_point` is the function that the tests call. `seconds` limits the
    CPU time, and separately the idle time; `memory_mb` is address space beyond what Python itself takes.
    """

    source: str
    tests: tuple[str, ...]
    setup: str = ""
    entry_point: str | None = None
    seconds: float = 5.0
    memory_mb: int = 512
