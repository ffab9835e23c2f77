"""The wire format between the judge and a candidate: frames of tagged JSON with plain values only.

Nothing that arrives is ever executed or unpickled. None, booleans, strings, floats and small integers are sent as they
are; all other values are sent as `[tag, payload]`. An instance of a builtin type's subclass arrives as an instance of
the builtin type. This module runs inside the sandbox and imports only the standard library.
"""

import datetime
import itertools
import json
import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_FRAME_BYTES = 16 << 20
MAX_DEPTH = 100
MAX_VALUES = 500_000  # per message
MAX_DRAINED = 100_000  # items taken from a returned iterator; the rest is dropped
SMALL = 1 << 53
LENGTH = struct.Struct("!I")


class WireError(Exception):
    """A message is too large, too deep, truncated or malformed, or a value cannot be sent."""


def _only(kind: type) -> Callable[[Any], Any]:
    """Return a decoder that returns values of exactly this type unchanged, and rejects all others."""

    def received(sent: Any) -> Any:
        if type(sent) is not kind:
            raise WireError(f"not a {kind.__name__}")
        return sent

    return received


def _from_hexadecimal(kind: Any) -> Callable[[Any], Any]:
    return lambda sent: kind(*(int(part, 16) for part in sent))


# How each scalar type is encoded and decoded. A subclass instance is sent as the builtin, using the builtin's methods.
# Integers are hexadecimal, because Python prints at most 4,300 decimal digits.
SCALARS: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    int: (lambda value: hex(int.__int__(value)), lambda sent: int(sent, 16)),
    str: (str.__str__, _only(str)),
    float: (float.__float__, _only(float)),
    complex: (
        lambda value: [complex.real.__get__(value), complex.imag.__get__(value)],
        lambda sent: complex(*map(float, sent)),
    ),
    bytes: (lambda value: bytes(memoryview(value)).hex(), bytes.fromhex),
    bytearray: (lambda value: bytes(memoryview(value)).hex(), bytearray.fromhex),
    Fraction: (lambda value: [hex(int(value.numerator)), hex(int(value.denominator))], _from_hexadecimal(Fraction)),
    range: (lambda value: [hex(value.start), hex(value.stop), hex(value.step)], _from_hexadecimal(range)),
    Decimal: (Decimal.__str__, Decimal),
    datetime.datetime: (datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: (datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: (datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda sent: datetime.timedelta(*sent),
    ),
}
COLLECTIONS = (list, tuple, set, frozenset, deque)
# Types that a test may pass or a candidate may return, by name.
TYPES: dict[str, Any] = {
    kind.__name__: kind for kind in (*SCALARS, *COLLECTIONS[:-1], dict, object, type(None), bool, type)
}
DICT_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}


class Channel:
    """Sends and receives frames over a file descriptor. Each frame is four bytes of length, then JSON."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, message: Any) -> None:
        """Write one message. Raises WireError if the message is too large."""
        data = json.dumps(message, check_circular=False).encode("ascii")
        if len(data) > MAX_FRAME_BYTES:
            raise WireError(f"a message of {len(data)} bytes")
        view = memoryview(LENGTH.pack(len(data)) + data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def receive(self) -> Any:
        """Return the next message. Raises EOFError if the channel is closed, WireError if the message is malformed."""
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise WireError(f"a message of {length} bytes")
        try:
            return json.loads(self._exactly(length))
        except (ValueError, RecursionError) as error:
            raise WireError(f"not JSON ({type(error).__name__})") from None

    def _exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            part = os.read(self.descriptor, min(count, 1 << 20))
            if not part:
                raise EOFError("the other side is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class Encoder:
    """Encodes values as JSON. For a value that cannot be sent as data, `refer` returns a reference or raises."""

    def __init__(self, refer: Callable[[Any], list[Any]]) -> None:
        self.refer = refer
        self.values = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return the value in wire format. Raises WireError if it is nested too deeply or contains too many values."""
        self.values += 1
        if depth > MAX_DEPTH or self.values > MAX_VALUES:
            raise WireError("too deep" if depth > MAX_DEPTH else "too many values")
        kind = type(value)
        if value is None or kind is bool or kind is str or kind is float:
            return value
        if kind is int:
            return value if -SMALL < value < SMALL else ["int", hex(value)]
        if kind is type:
            return ["type", value.__name__] if TYPES.get(value.__name__) is value else self.refer(value)
        return self._scalar(value) or self._collection(value, depth + 1) or self.refer(value)

    def _scalar(self, value: Any) -> Any:
        for kind, (send, _) in SCALARS.items():
            if isinstance(value, kind):
                return [kind.__name__, send(value)]
        return None

    def _collection(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return ["dict", [[self.encode(k, depth), self.encode(v, depth)] for k, v in dict.items(value)]]
        for kind in COLLECTIONS:
            if isinstance(value, kind):
                return [kind.__name__, [self.encode(item, depth) for item in kind.__iter__(value)]]  # pyrefly: ignore[bad-argument-type]
        view = DICT_VIEWS.get(type(value))
        if view is not None:
            return [view, [self.encode(item, depth) for item in value]]
        if isinstance(value, Iterator):
            return ["iterator", [self.encode(item, depth) for item in itertools.islice(value, MAX_DRAINED)]]
        return None


class Decoder:
    """Decodes received JSON into values. `resolve` returns the object that a reference stands for."""

    def __init__(self, resolve: Callable[[str, Any], Any]) -> None:
        self.resolve = resolve

    def decode(self, sent: Any) -> Any:
        """Return the decoded value. Raises WireError if `sent` is malformed."""
        try:
            return self._decode(sent)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
            raise WireError(f"not in the format ({type(error).__name__})") from None

    def _decode(self, sent: Any) -> Any:
        if not isinstance(sent, list):
            if isinstance(sent, dict):
                raise WireError("an object where a value belongs")
            return sent
        tag, payload = sent
        match tag:
            case "list" | "tuple" | "set" | "frozenset":
                return TYPES[tag](map(self._decode, payload))
            case "deque":
                return deque(map(self._decode, payload))
            case "dict":
                return {self._decode(key): self._decode(value) for key, value in payload}
            case "iterator":
                return iter([self._decode(item) for item in payload])
            case "keys":
                return dict.fromkeys(map(self._decode, payload)).keys()
            case "values":
                return dict(enumerate(map(self._decode, payload))).values()
            case "items":
                return dict(map(self._decode, payload)).items()
            case "type":
                return TYPES[payload]
            case _ if TYPES.get(tag) in SCALARS:
                _, receive = SCALARS[TYPES[tag]]
                return receive(payload)
            case _:
                return self.resolve(tag, payload)
