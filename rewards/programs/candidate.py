"""The untrusted process, which executes the program's source and then answers the judge's questions.

Nothing here is trusted, because the program shares this interpreter and may change every object in it. The program can
reach the judge only through the channel, on which the judge accepts nothing but plain values.
"""

import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from rewards.programs.wire import Channel, Decoder, Encoder, WireError

THREAD_STACK_BYTES = 1 << 20
MODULE = "solution"  # not "__main__", so that a demo at the end of the program does not run


def serve(channel: Channel, source: bytes) -> None:
    """Execute the program, then answer questions until the judge closes the channel."""
    threading.stack_size(THREAD_STACK_BYTES)  # otherwise each thread takes 8 MB of the address space
    candidate = Candidate(channel)
    candidate.load(source)
    while True:
        try:
            candidate.answer(channel.receive())
        except EOFError:
            return


class Candidate:
    """Holds the program's module, and those of its objects that the judge has references to."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.module = types.ModuleType(MODULE)
        self.failure: BaseException | None = None
        self.references: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.decoder = Decoder(self._resolve)

    def load(self, source: bytes) -> None:
        """Execute the source as a module. If it raises, the exception becomes the answer to every question."""
        sys.modules[MODULE] = self.module
        try:
            code = compile(source, "<solution>", "exec", dont_inherit=True)
        except MemoryError:  # the parser's stack is full, not the machine's memory
            self.failure = SyntaxError("too deeply nested, or too long a line of words")
            return
        except Exception as error:
            self.failure = error
            return
        try:
            exec(code, self.module.__dict__)
        except BaseException as error:  # including SystemExit, with which a program ends itself
            self.failure = _freed(error)

    def answer(self, question: Any) -> None:
        """Answer one question, `[operation, …]`, with `["value", …]` or `["raise", …]`."""
        try:
            if self.failure is not None:
                raise self.failure
            answer = ["value", self._encode(self._do(*question))]
        except EOFError:
            os._exit(0)
        except BaseException as error:
            answer = ["raise", _described(_freed(error))]
        try:
            self.channel.send(answer)
        except WireError as error:
            self.channel.send(["value", ["opaque", str(error)]])

    def _do(self, operation: str, *operands: Any) -> Any:
        decode = self.decoder.decode
        match operation, operands:
            case "lookup", (name,):
                return self.module.__dict__[name]
            case "defined", (names,):
                return [name for name in names if name in self.module.__dict__]
            case "call", (target, args, kwargs):
                return decode(target)(*decode(args), **decode(kwargs))
            case "get", (target, name):
                return getattr(decode(target), name)
            case "set", (target, name, value):
                return setattr(decode(target), name, decode(value))
            case "item", (target, key):
                return decode(target)[decode(key)]
            case "iterate", (target,):
                return iter(decode(target))
            case "length", (target,):
                return len(decode(target))
            case "text", (target,):
                return str(decode(target))
        raise WireError(f"no operation {operation}")

    def _encode(self, value: Any) -> Any:
        try:
            return Encoder(self._refer).encode(value)
        except Exception as error:  # including errors from an object that lies about its class
            return ["opaque", type(error).__name__]

    def _refer(self, value: Any) -> list[Any]:
        """Return a reference to a callable or an instance of a program's class; for other values, their type's name."""
        kind = value if isinstance(value, type) else type(value)
        if not callable(value) and getattr(kind, "__module__", None) != MODULE:
            return ["opaque", kind.__name__]
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.references)
            self.references.append(value)  # kept alive, so that its id is not reused
        inherited = {name for ancestor in type.mro(type(value)) for name in vars(ancestor)}
        abilities = [name for name in ("__call__", "__getitem__", "__iter__", "__len__") if name in inherited]
        return ["theirs", [self.numbers[id(value)], abilities]]

    def _resolve(self, tag: str, payload: Any) -> Any:
        if tag == "theirs":
            return self.references[payload]
        if tag == "ours":
            return self._callback(payload)
        raise WireError(f"no tag {tag}")

    def _callback(self, number: int) -> Callable[..., Any]:
        """Return a stand-in for a function that the test passed to the program. Calling it runs the test's function."""

        def call(*args: Any) -> Any:
            """Call the test's function in the judge's process, and return its result."""
            self.channel.send(["callback", number, Encoder(self._refer).encode(args)])
            while True:
                message = self.channel.receive()
                if message[0] == "returned":
                    return self.decoder.decode(message[1])
                self.answer(message)  # the test's function asks about the program's objects

        return call


def _freed(error: BaseException) -> BaseException:
    """Drop the frames that the exception refers to, so that there is memory for sending the answer."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def _described(error: BaseException) -> list[Any]:
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    try:
        text = str(error)[:200]
    except BaseException:  # a custom __str__ may raise anything
        text = ""
    return [names, text]
