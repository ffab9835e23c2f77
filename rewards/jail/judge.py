"""The trusted process that runs a problem's own tests, with the program's names replaced by proxies.

The verdict is made here, from values that arrived as plain data: the program never sees a test, and whatever it does in
its own process can at most return a wrong value.
"""

import ast
import builtins
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rewards.jail.wire import Channel, Decoder, Encoder, WireError

# What tests use without importing it: in a plain run the program's own imports would have provided it.
MODULES = frozenset(
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools json math operator random re "
    "statistics string sys typing".split()
)
# Modules whose names tests use as they are (`Counter`, `isclose`, `List`): the judge's own, whatever the program has.
OPENED = (
    "typing",
    "collections",
    "math",
    "fractions",
    "decimal",
    "datetime",
    "itertools",
    "functools",
    "heapq",
    "bisect",
)
# What the objects of a test's own world can do: an answer that pretends to be a text or a list is none.
BUILTIN_METHODS = frozenset(
    name for kind in (str, bytes, int, float, list, tuple, dict, set) for name in dir(kind) if not name.startswith("__")
)


class CandidateGone(BaseException):
    """The program's process ended, closed its channel or asked to exit."""


class CandidateRaised(Exception):
    """An exception of the program, as the test sees it: also of the nearest builtin exception's class."""

    names: tuple[str, ...] = ()


class Unusable(Exception):
    """A test used what did not cross by value: an opaque object, or a comparison with one."""


def open_names() -> dict[str, Any]:
    """The public names of the opened modules; a builtin (`pow`) stays what it is."""
    modules = [importlib.import_module(name) for name in OPENED]
    named = [(name, getattr(module, name)) for module in modules for name in getattr(module, "__all__", dir(module))]
    return {name: value for name, value in named if not name.startswith("_") and not hasattr(builtins, name)}


@dataclass(frozen=True)
class Raised:
    """An answer that is an exception: kept apart from those of the channel itself."""

    exception: BaseException


class Connection:
    """Questions to the program, and the values and proxies that answer them."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lent: list[Callable[..., Any]] = []  # the test's functions that the program was given
        self.refused_methods: frozenset[str] = frozenset()
        self.broken: BaseException | None = None  # kept, for a test may catch whatever is raised
        self.proxies: dict[int, Proxy] = {}
        self.decoder = Decoder(self._resolve)

    def ask(self, *question: Any) -> Any:
        """The answer's value. Raises what the program raised, CandidateGone, or Unusable for what is no answer."""
        try:
            answer = self._answer_to(question)
        except (EOFError, OSError):
            answer = Raised(CandidateGone("ended"))
        except WireError as error:
            self.refuse(str(error))
        if isinstance(answer, Raised):
            if isinstance(answer.exception, CandidateGone):
                self.broken = answer.exception
            raise answer.exception
        return answer

    def refuse(self, what: str) -> NoReturn:
        """Raises Unusable, which no test can catch for good."""
        self.broken = self.broken or Unusable(what)
        raise self.broken

    def _answer_to(self, question: Sequence[Any]) -> Any:
        self.channel.send(question)
        while True:
            match self.channel.receive():
                case ["value", sent]:
                    return self.decoder.decode(sent)
                case ["raise", [list(names), str(text)]]:
                    return Raised(_raised(names, text))
                case ["callback", number, args]:
                    self._call_back(number, args)
                case _:
                    raise WireError("no answer")

    def encode(self, value: Any) -> Any:
        """A value of the test in the wire's form."""
        return Encoder(self._refer).encode(value)

    def _call_back(self, number: Any, args: Any) -> None:
        if type(number) is not int or not 0 <= number < len(self.lent):
            raise WireError("no such function")
        self.channel.send(["returned", self.encode(self.lent[number](*self.decoder.decode(args)))])

    def _refer(self, value: Any) -> list[Any]:
        if isinstance(value, Proxy):
            return ["theirs", object.__getattribute__(value, "_number")]
        if callable(value):
            self.lent.append(value)
            return ["ours", len(self.lent) - 1]
        raise WireError(f"a test passes a {type(value).__name__}, which cannot cross")

    def _resolve(self, tag: str, payload: Any) -> Any:
        if tag == "opaque":
            return Opaque(self, str(payload)[:200])
        if tag != "theirs" or type(payload) is not int:
            raise WireError("no such tag")
        if payload not in self.proxies:
            self.proxies[payload] = Proxy(self, payload)
        return self.proxies[payload]


class Proxy:
    """An object that the program defined: its attributes, calls and items are asked of the program.

    It has no arithmetic, no order and no truth, and is equal to itself only: whatever decides a test is a plain value.
    """

    _connection: Connection
    _number: int

    def __init__(self, connection: Connection, number: int) -> None:
        object.__setattr__(self, "_connection", connection)
        object.__setattr__(self, "_number", number)

    def _ask(self, operation: str, *operands: Any) -> Any:
        return self._connection.ask(operation, ["theirs", self._number], *operands)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        encode = self._connection.encode
        return self._ask("call", encode(args), encode(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in self._connection.refused_methods:
            self._connection.refuse(f"{name} of the program's object")
        return self._ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, self._connection.encode(value))

    def __getitem__(self, key: Any) -> Any:
        return self._ask("item", self._connection.encode(key))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ask("iterate"))

    def __len__(self) -> int:
        return self._ask("length")

    def __str__(self) -> str:
        text = self._ask("text")
        return text if type(text) is str else self._connection.refuse("a text that is none")

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)

    def __hash__(self) -> int:
        return hash(self._number)

    def __eq__(self, other: object) -> bool:
        if other is None or isinstance(other, Proxy):
            return self is other
        self._connection.refuse("a comparison with the program's object")

    def __bool__(self) -> bool:
        self._connection.refuse("the truth of the program's object")


class Opaque:
    """What cannot cross. Every use of it fails."""

    def __init__(self, connection: Connection, kind: str) -> None:
        object.__setattr__(self, "_parts", (connection, kind))

    def _fail(self, *_: Any, **__: Any) -> Any:
        connection, kind = object.__getattribute__(self, "_parts")
        connection.refuse(f"the program returned something unusable ({kind})")

    __getattr__ = __setattr__ = __call__ = __eq__ = __ne__ = __hash__ = __bool__ = __str__ = __repr__ = _fail
    __iter__ = __len__ = __getitem__ = __contains__ = __lt__ = __le__ = __gt__ = __ge__ = __format__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __float__ = __int__ = __index__ = __abs__ = _fail


def judge(channel: Channel, setup: str, tests: Sequence[str], entry_point: str | None) -> tuple[str, str]:
    """Runs setup and tests. Returns `correct`, `wrong`, `crashed`, `forbidden`, `out_of_memory`, `grader_failed` or
    `gone` (how the program ended is then the verdict), and the reason in a line."""
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
        return _verdict_of(error), f"{error.names[0] if error.names else 'exception'}: {error}"
    except AssertionError as error:
        return "wrong", f"a test failed: {_line(error)}"
    except MemoryError:
        return "out_of_memory", "the values returned are too large"
    except CandidateGone as error:
        return "gone", str(error)
    except BaseException as error:
        return "wrong", f"{type(error).__name__}: {_line(error)}"


def free_names(texts: Sequence[str], entry_point: str | None) -> list[str]:
    """The names that the program has to provide: used by the tests and not defined there, nor by the standard library.

    The entry point always; without one, and if there is no such name, the first one called: `assert sum(2, 3) == 5`.
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
    if entry_point is not None and entry_point[:1].islower() and set(names) <= {entry_point}:
        connection.refused_methods = BUILTIN_METHODS  # the tests know of no class of the program's
    defined = connection.ask("defined", list(names))
    for name in names:
        if not isinstance(defined, list) or name not in defined:
            raise _raised(["NameError"], f"the program does not define {name}")
        namespace[name] = connection.ask("lookup", name)
    return namespace


def _raised(names: list[Any], text: str) -> BaseException:
    """The program's exception in the judge: of a class that `except ValueError` in a test catches."""
    known = tuple(str(name)[:50] for name in names[:10])
    kinds = [kind for name in known if isinstance(kind := getattr(builtins, name, None), type)]
    base = next((kind for kind in kinds if issubclass(kind, BaseException)), Exception)
    if not issubclass(base, Exception):
        return CandidateGone(f"{base.__name__}: {text[:200]}")
    if issubclass(base, (StopIteration, StopAsyncIteration, BaseExceptionGroup)):
        base = Exception  # the one would end a loop of the test in silence, the other needs members
    facts = {"names": known, "__init__": lambda self: None, "__str__": lambda self: text[:200]}
    bases = (CandidateRaised,) if base is Exception else (base, CandidateRaised)
    return type(base.__name__, bases, facts)()


def _verdict_of(error: CandidateRaised) -> str:
    if isinstance(error, MemoryError):
        return "out_of_memory"
    return "forbidden" if isinstance(error, PermissionError) else "crashed"


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error)[:200].split())
    except BaseException:  # its arguments are values of the program
        return "no text"
