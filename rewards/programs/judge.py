"""The trusted process, which runs a problem's tests with proxies in place of the program's functions and classes.

This process decides the verdict, from values that arrive as plain data. The program never sees a test, and the worst
that it can do from its own process is to return a wrong value.
"""

import ast
import builtins
import importlib
from collections.abc import Sequence
from typing import Any

from rewards.programs.proxies import CandidateGone, CandidateRaised, Connection, as_raised
from rewards.programs.wire import Channel

# Modules that tests use without importing them. Outside the sandbox, the program's imports would provide them.
MODULES = frozenset(
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools json math operator random re "
    "statistics string sys typing".split()
)
# Modules whose names tests use unqualified (`Counter`, `isclose`, `List`). The judge's versions take precedence.
OPENED = "typing collections math fractions decimal datetime itertools functools heapq bisect".split()


def open_names() -> dict[str, Any]:
    """Return the public names of the `OPENED` modules, except those that would shadow a builtin, such as `pow`."""
    modules = [importlib.import_module(name) for name in OPENED]
    named = [(name, getattr(module, name)) for module in modules for name in getattr(module, "__all__", dir(module))]
    return {name: value for name, value in named if not name.startswith("_") and not hasattr(builtins, name)}


def judge(channel: Channel, setup: str, tests: Sequence[str], entry_point: str | None) -> tuple[str, str]:
    """Run the setup and the tests, and return the verdict with a one-line reason.

    The verdict is `correct`, `wrong`, `crashed`, `forbidden`, `out_of_memory`, `grader_failed` or `gone`, which
    means that the program's process ended early: the warden then decides the verdict from how that process ended.
    """
    try:
        codes = [compile(text, "<test>", "exec", dont_inherit=True) for text in (setup, *tests)]
        names = free_names([setup, *tests], entry_point)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return "grader_failed", f"the test cannot be read: {error}"
    if not tests:
        return "grader_failed", "there is no test"
    connection = Connection(channel)
    try:
        namespace = _namespace(connection, names, entry_point)
        for code in codes:
            exec(code, namespace)
            if connection.broken is not None:
                raise connection.broken
        return "correct", ""
    except CandidateRaised as error:
        return _verdict_of(error), f"{error.names[0] if error.names else 'exception'}: {_line(error)}"
    except AssertionError as error:
        return "wrong", f"a test failed: {_line(error)}"
    except MemoryError:
        return "out_of_memory", "the values returned are too large"
    except CandidateGone as error:
        return "gone", str(error)
    except BaseException as error:
        return "wrong", f"{type(error).__name__}: {_line(error)}"


def free_names(texts: Sequence[str], entry_point: str | None) -> list[str]:
    """Return the names that the program must define: the tests use them, but neither tests nor libraries define them.

    An entry point that the tests use is always included. If `entry_point` is None and no name qualifies, return
    the first name that the tests call, such as `sum` in `assert sum(2, 3) == 5`.
    """
    used: dict[str, None] = {}
    defined: set[str] = set()
    called: list[str] = []
    for node in (node for text in texts for node in ast.walk(ast.parse(text))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = None
            case ast.Name(id=name) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                defined.add(name)
            case ast.alias(name=name):
                defined.add(name.partition(".")[0])
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                defined.add(name)
            case ast.Call(func=ast.Name(id=name)):
                called.append(name)
    ours = {*dir(builtins), *MODULES, *open_names()}
    free = [name for name in used if name not in defined and name not in ours]
    if entry_point is None:
        return free or [name for name in called if name not in defined][:1]
    return [*dict.fromkeys([entry_point, *free])] if entry_point in used else free


def _namespace(connection: Connection, names: Sequence[str], entry_point: str | None) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins} | open_names()
    namespace |= {name: importlib.import_module(name) for name in MODULES}
    if len(names) <= 1 and all(name[:1].islower() for name in names):
        connection.knows_classes = False
    defined = connection.ask("defined", list(names))
    for name in names:
        if not isinstance(defined, list) or name not in defined:
            raise as_raised(["NameError"], f"the program does not define {name}")
        namespace[name] = connection.ask("lookup", name)
    return namespace


def _verdict_of(error: CandidateRaised) -> str:
    if isinstance(error, MemoryError):
        return "out_of_memory"
    return "forbidden" if isinstance(error, PermissionError) else "crashed"


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error)[:200].split())
    except BaseException:  # the error's arguments may be the program's objects
        return "no text"
