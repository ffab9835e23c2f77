"""The corpus in tests/rewards/hostile: each file a program, which begins with what it is and how it may be judged.

    # what: one line                           first
    # allowed: wrong crashed                   second: the verdicts that it may get
    # test: assert solve(3) == 4               one or more, in order
    # setup: import math                       lines of the tests' setup
    # entry: solve                             the entry point, if it is not `solve`; `none` if the judge is not told
    # needs: seccomp                           layers without which the verdict cannot be promised
    # seconds: 2                               of CPU time
    # memory_mb: 128
    # bytes: text.replace("\\n", "\\r\\n")       an expression for the source, of the text below the header

An empty line ends the header. What is judged is the text below it: the program does not hold its own tests. An attack
is written so that its success is what the tests ask for: a verdict of `correct` outside of odd/ is a hole.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rewards.sandbox import Layer, Program
from rewards.verifier import Verdict

FOLDER = Path(__file__).parent / "hostile"
CATEGORIES = ("escape", "forging", "odd", "resources", "wrong")
VERDICTS = frozenset(get_args(Verdict)) - {"grader_failed"}
FACT = re.compile(r"# (what|allowed|test|setup|entry|needs|seconds|memory_mb|bytes): (.*\S)\s*")
REPEATED = ("test", "setup")
SECONDS = {"resources": 0.5}  # the default of a category: short, so that the run is
MOST_SECONDS = 2.0


class BrokenHeader(Exception):
    """A program of the corpus that does not say what it has to, or says it twice; the text names file and line."""


@dataclass(frozen=True)
class Hostile:
    """A program, the verdicts that it may get and the layers that it takes to be sure of that."""

    name: str  # category/name
    what: str
    allowed: frozenset[str]
    needs: frozenset[str]
    program: Program

    @property
    def category(self) -> str:
        """The folder that it lies in."""
        return self.name.partition("/")[0]

    @property
    def is_quick(self) -> bool:
        """Whether it does not use up its seconds: it may not be judged a timeout."""
        return "timeout" not in self.allowed


def read_corpus(folder: Path = FOLDER) -> list[Hostile]:
    """All programs in the order of their names. Raises BrokenHeader."""
    return [read_program(path) for path in sorted(folder.glob("*/*.py"))]


def read_program(path: Path) -> Hostile:
    """One file of the corpus. Raises BrokenHeader."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    facts: dict[str, list[str]] = {}
    for number, line in enumerate(head.splitlines(), 1):
        fact = FACT.fullmatch(line)
        if fact is None:
            raise BrokenHeader(f"{path}, line {number}: not a fact of the header: {line}")
        facts.setdefault(fact[1], []).append(fact[2])
    try:
        return _program(f"{path.parent.name}/{path.stem}", facts, text)
    except (BrokenHeader, SyntaxError, ValueError) as error:
        raise BrokenHeader(f"{path}: {error}") from error


def _program(name: str, facts: dict[str, list[str]], text: str) -> Hostile:
    category = name.partition("/")[0]
    repeated = [key for key, values in facts.items() if len(values) > 1 and key not in REPEATED]
    if list(facts)[:2] != ["what", "allowed"] or "test" not in facts or repeated or category not in CATEGORIES:
        raise BrokenHeader(f"`what`, `allowed` and at least one `test` belong here, and nothing twice {repeated}")
    for code in ["\n".join(facts.get("setup", [])), *facts["test"]]:
        compile(code, name, "exec")
    one = {key: values[0] for key, values in facts.items()}
    program = Program(
        source=eval(one["bytes"], {"text": text}) if "bytes" in one else text,
        tests=tuple(facts["test"]),
        setup="\n".join(facts.get("setup", [])),
        entry_point=None if one.get("entry") == "none" else one.get("entry", "solve"),
        seconds=float(one.get("seconds", SECONDS.get(category, MOST_SECONDS))),
        memory_mb=int(one.get("memory_mb", 512)),
    )
    allowed, needs = frozenset(one["allowed"].split()), frozenset(one.get("needs", "").split())
    honest = {"odd": {"correct"}, "wrong": {"wrong"}}
    if (
        not allowed <= VERDICTS
        or ("correct" in allowed) != (category == "odd")
        or honest.get(category, allowed) != allowed
    ):
        raise BrokenHeader(f"such a program cannot be allowed {sorted(allowed)}")
    if not needs <= set(get_args(Layer)) or program.seconds > MOST_SECONDS:
        raise BrokenHeader(f"no such layers, or too many seconds: {sorted(needs)}, {program.seconds}")
    return Hostile(name, one["what"], allowed, needs, program)
