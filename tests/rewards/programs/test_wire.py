import contextlib
import json
import math
import os
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.programs.wire import MAX_DRAINED, MAX_FRAME_BYTES, Channel, Decoder, Encoder, WireError

Point = namedtuple("Point", "x y")


def unknown(*what: object) -> Any:
    raise WireError(f"no reference: {what}")


def crossed(value: Any) -> Any:
    return Decoder(unknown).decode(json.loads(json.dumps(Encoder(unknown).encode(value))))


keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters(exclude_categories=()))  # lone surrogates too
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys | st.tuples(keys) | st.frozensets(keys), inner, max_size=4)
        | st.sets(st.integers() | st.text(max_size=3), max_size=4)
        | st.frozensets(st.integers(), max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
def test_plain_values_arrive_equal_and_of_the_same_type(value: Any) -> None:
    arrived = crossed(value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    "value",
    [-0.0, math.inf, -math.inf, 10**4000, -(2**53), range(5, -3, -2), bytearray(b"x"), deque([1, 2]), int, list],
)
def test_edge_values(value: Any) -> None:
    arrived = crossed(value)
    assert arrived == value
    assert type(arrived) is type(value)
    assert not isinstance(value, float) or math.copysign(1, arrived) == math.copysign(1, value)
    assert math.isnan(crossed(math.nan))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (HTTPStatus.OK, int),
        (Point(1, 2), tuple),
        (Counter("aab"), dict),
        (defaultdict(int, a=1), dict),
        (OrderedDict(b=1, a=2), dict),
        (type("Text", (str,), {})("x"), str),
        (type("Many", (list,), {})([1]), list),
        (type("Real", (float,), {})(1.5), float),
    ],
)
def test_subclasses_arrive_as_the_builtin(value: Any, kind: type) -> None:
    arrived = crossed(value)
    assert type(arrived) is kind
    assert arrived == value


def test_a_lying_subclass_is_read_by_the_builtins_own_methods() -> None:
    class Liar(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __int__(self) -> int:
            return 42

        def __hash__(self) -> int:
            return 0

    assert crossed(Liar(7)) == 7


def test_views_and_iterators() -> None:
    assert crossed({"a": 1}.keys()) == {"a"}
    assert crossed({"a": 1}.items()) == {("a", 1)}
    assert list(crossed({"a": 1}.values())) == [1]
    arrived = crossed(x * x for x in range(4))
    assert next(arrived) == 0
    assert list(arrived) == [1, 4, 9]


def test_an_endless_iterator_is_taken_up_to_the_cap() -> None:
    def endless():
        while True:
            yield 1

    assert len(list(crossed(endless()))) == MAX_DRAINED


def test_too_deep_and_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.programs.wire.MAX_VALUES", 5_000)
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(WireError, match="too deep"):
        Encoder(unknown).encode(deep)
    doubled: list[Any] = [0]
    for _ in range(30):  # 2**30 values, though only 31 lists
        doubled = [doubled, doubled]
    with pytest.raises(WireError, match="too many"):
        Encoder(unknown).encode(doubled)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
tags = st.sampled_from(
    "int str float complex bytes bytearray Fraction range Decimal date datetime time timedelta type list tuple set "
    "frozenset deque dict iterator keys values items theirs opaque nonsense".split()
)


@given(st.tuples(tags, anything).map(list) | anything)
def test_anything_that_arrives_is_a_value_or_a_wire_error(sent: Any) -> None:
    with contextlib.suppress(WireError):
        Decoder(unknown).decode(sent)


def test_frames_cross_whole_and_the_end_is_seen() -> None:
    out, into = os.pipe()
    Channel(into).send(["call", {"a": "ü"}])
    os.close(into)
    channel = Channel(out)
    assert channel.receive() == ["call", {"a": "ü"}]
    with pytest.raises(EOFError):
        channel.receive()
    os.close(out)


@pytest.mark.parametrize(
    "frame",
    [
        (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
        (3).to_bytes(4, "big") + b"{[}",
        (200_000).to_bytes(4, "big") + b"[" * 200_000,
    ],
)
def test_malformed_frames_are_refused(frame: bytes) -> None:
    out, into = os.pipe()
    if os.fork() == 0:  # the pipe holds less than the frame
        os.write(into, frame)
        os._exit(0)
    with pytest.raises(WireError):
        Channel(out).receive()
    os.close(out)
    os.close(into)
    os.wait()
