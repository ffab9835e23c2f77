"""Proxies that stand for the program's objects in the tests: each use of a proxy asks the program's process.

Each value that the program sends becomes plain data, a proxy or an opaque object. Nothing that it sends is run here.
"""

import builtins
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from rewards.programs.wire import TYPES, Channel, Decoder, Encoder, WireError

# Methods of plain values. If the tests name none of the program's classes, an object that has one of these methods is
# pretending to be a string or a list.
BUILTIN_METHODS = frozenset(name for kind in TYPES.values() for name in dir(kind) if not name.startswith("__"))


class CandidateGone(BaseException):
    """The program's process ended, closed its channel or asked to exit."""


class CandidateRaised(Exception):
    """An exception that the program raised, as the test sees it. Its class also derives from a builtin exception."""

    names: tuple[str, ...] = ()


class Unusable(Exception):
    """A test needed the value of an object that was not sent by value, or the program's reply was malformed."""


class Connection:
    """Asks the program questions, and turns the answers into values and proxies."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lent: list[Callable[..., Any]] = []  # the test's functions that were passed to the program
        self.knows_classes = True  # whether the tests name any of the program's classes
        self.broken: BaseException | None = None  # why the test must fail, even if it catches this exception
        self.proxies: dict[int, Proxy] = {}
        self.decoder = Decoder(self._resolve)

    def ask(self, *question: Any) -> Any:
        """Return the program's answer. Raises the program's exception, CandidateGone, or Unusable for a bad reply."""
        try:
            kind, answer = self._answer_to(question)
        except (EOFError, OSError):  # from the channel: the program's exceptions arrive as answers
            kind, answer = "raise", CandidateGone("ended")
        except WireError as error:
            self.refuse(str(error))
        if kind == "raise":
            if isinstance(answer, CandidateGone):
                self.broken = answer
            raise answer
        return answer

    def refuse(self, what: str) -> NoReturn:
        """Raise Unusable. The test fails even if it catches this exception."""
        self.broken = self.broken or Unusable(what)
        raise self.broken

    def _answer_to(self, question: Sequence[Any]) -> tuple[str, Any]:
        self.channel.send(question)
        while True:
            match self.channel.receive():
                case ["value", sent]:
                    return "value", self.decoder.decode(sent)
                case ["raise", [list(names), str(text)]]:
                    return "raise", as_raised(names, text)
                case ["callback", number, args]:
                    self._call_back(number, args)
                case _:
                    raise WireError("no answer")

    def encode(self, value: Any) -> Any:
        """Return a value of the test in the wire format."""
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
        match tag, payload:
            case "theirs", [int(number), list(abilities)]:
                if number not in self.proxies:
                    known = ABILITIES if self.knows_classes else ("__call__",)
                    can = frozenset(name for name in known if name in abilities)
                    self.proxies[number] = proxy_class(can)(self, number)
                return self.proxies[number]
        raise WireError("no such tag")


class Proxy:
    """Stands in for one of the program's objects. Attribute access and `ABILITIES` run in the program's process.

    A proxy has no arithmetic, ordering or truth value, and equals only itself, so that only plain values decide a test.
    """

    _connection: Connection
    _number: int

    def __init__(self, connection: Connection, number: int) -> None:
        object.__setattr__(self, "_connection", connection)
        object.__setattr__(self, "_number", number)

    def _ask(self, operation: str, *operands: Any) -> Any:
        return self._connection.ask(operation, ["theirs", self._number], *operands)

    def __getattr__(self, name: str) -> Any:
        pretended = name in BUILTIN_METHODS and not self._connection.knows_classes
        if name.startswith("__") or pretended:
            self._connection.refuse(f"{name} of the program's object")
        return self._ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("set", name, self._connection.encode(value))

    def __str__(self) -> str:
        text = self._ask("text") if self._connection.knows_classes else None
        return text if type(text) is str else self._connection.refuse("the text of the program's object")

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


ABILITIES: dict[str, Callable[..., Any]] = {
    "__call__": lambda self, *args, **kwargs: self._ask("call", *map(self._connection.encode, (args, kwargs))),
    "__getitem__": lambda self, key: self._ask("item", self._connection.encode(key)),
    "__iter__": lambda self: iter(self._ask("iterate")),
    "__len__": lambda self: self._ask("length"),
}


@cache
def proxy_class(abilities: frozenset[str]) -> type[Proxy]:
    """Return a Proxy class with exactly these abilities. A test may check whether an object is callable or iterable."""
    return type("Proxy", (Proxy,), {name: method for name, method in ABILITIES.items() if name in abilities})


class Opaque:
    """Stands for a value that the program could not send. Every use of it fails the test."""

    def __init__(self, connection: Connection, kind: str) -> None:
        object.__setattr__(self, "_parts", (connection, kind))

    def _fail(self, *_: Any, **__: Any) -> Any:
        connection, kind = object.__getattribute__(self, "_parts")
        connection.refuse(f"the program returned something unusable ({kind})")

    __getattr__ = __setattr__ = __eq__ = __ne__ = __hash__ = __bool__ = __str__ = __repr__ = __format__ = _fail


def as_raised(names: list[Any], text: str) -> BaseException:
    """Return the program's exception in a form that the test can catch by its builtin class (`except ValueError`)."""
    known = tuple(str(name)[:50] for name in names[:10])
    kinds = [kind for name in known if isinstance(kind := getattr(builtins, name, None), type)]
    base = next((kind for kind in kinds if issubclass(kind, BaseException)), Exception)
    if not issubclass(base, Exception):
        return CandidateGone(f"{base.__name__}: {text[:200]}")
    if issubclass(base, (StopIteration, StopAsyncIteration, BaseExceptionGroup)):
        base = Exception  # the first two would silently end a loop in the test; a group needs members
    facts = {"names": known, "__init__": lambda self: None, "__str__": lambda self: text[:200]}
    bases = (CandidateRaised,) if base is Exception else (base, CandidateRaised)
    return type(base.__name__, bases, facts)()
