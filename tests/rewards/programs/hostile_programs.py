"""The hostile corpus: tests/rewards/programs/hostile/<category>.toml.

At the head of a file stand its mechanisms (each with its programs), what its programs have unless they say otherwise,
and what several of them begin with. Then comes one table per program, `[name] # what it does`:

    allowed = ["wrong", "crashed"]              # the verdicts that the program may get
    needs = ["seccomp"]                         # layers without which the verdict cannot be promised
    seconds = 2                                 # of CPU time
    memory_mb = 128
    uses = ["libc"]                             # what it begins with
    setup = "import math"                       # runs before the tests, on their side
    tests = ["assert solve(3) == 4"]            # what an attack tries to pass
    source = '''…'''

`allowed`, `tests` and `source` are required. A program does not contain its own tests. An attack is written so
that its success is what the tests ask for: a verdict of `correct` outside odd.toml is a hole.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards.sandbox import Program

FOLDER = Path(__file__).parent / "hostile"
CATEGORIES = ("escape", "forging", "odd", "resources")
REQUIRED = {"allowed", "tests", "source"}
OPTIONAL = {"setup", "needs", "seconds", "memory_mb", "uses"}
SECONDS = {"resources": 0.5}  # a category's default: short, to keep the whole run short
MAX_SECONDS = 2.0


@dataclass(frozen=True)
class Hostile:
    """A program, the verdicts that it may get, and the layers needed to be sure of them."""

    name: str  # category/name
    allowed: frozenset[str]
    needs: frozenset[str]
    program: Program
    is_chosen: bool  # whether it is the first of its mechanism: what `make test` runs

    @property
    def category(self) -> str:
        """The file that the program is in."""
        return self.name.partition("/")[0]

    @property
    def is_quick(self) -> bool:
        """Whether the program ends before its seconds are used up: it may not be judged a timeout."""
        return "timeout" not in self.allowed


def read_corpus() -> list[Hostile]:
    """Return all programs, sorted by category, then in the order of the file."""
    return [hostile for category in CATEGORIES for hostile in _read(category)]


def _read(category: str) -> Iterator[Hostile]:
    entries = tomllib.loads((FOLDER / f"{category}.toml").read_text(encoding="utf-8"))
    mechanisms, defaults, snippets = entries.pop("mechanisms"), entries.pop("defaults"), entries.pop("snippets", {})
    by_mechanism = [names.split() for names in mechanisms.values()]
    assert sorted(entries) == sorted(name for names in by_mechanism for name in names), category
    chosen = {names[0] for names in by_mechanism}
    for name, entry in entries.items():
        yield _hostile(category, name, defaults | entry, snippets, name in chosen)


def _hostile(category: str, name: str, entry: Mapping[str, Any], snippets: Mapping[str, str], chosen: bool) -> Hostile:
    assert REQUIRED <= set(entry) <= REQUIRED | OPTIONAL, name
    for code in [entry.get("setup", ""), *entry["tests"]]:
        compile(code, name, "exec")
    source = "".join(f"{part}\n" for part in [*(snippets[use] for use in entry.get("uses", ())), entry["source"]])
    program = Program(
        source=source,
        tests=tuple(entry["tests"]),
        setup=entry.get("setup", ""),
        entry_point="solve",
        seconds=float(entry.get("seconds", SECONDS.get(category, MAX_SECONDS))),
        memory_mb=entry.get("memory_mb", 512),
    )
    assert program.tests, name
    assert program.seconds <= MAX_SECONDS, name
    allowed, needs = frozenset(entry["allowed"]), frozenset(entry.get("needs", ()))
    return Hostile(f"{category}/{name}", allowed, needs, program, chosen)
