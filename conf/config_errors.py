"""Turn pydantic's errors into one line in the user's words: what is wrong with a configuration."""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from conf.redact import redact
from conf.removed import REMOVED
from conf.storage.home import InputError

Key = tuple[str, ...]  # a dotted path, taken apart: ("benchmarks", "0", "weight")


def fault(text: str) -> InputError:
    """Return an error of one line, without the passwords that a URL in it may carry."""
    return InputError(redact(" ".join(text.splitlines())))


def shown(value: Any) -> str:
    """Return the value on one line, as JSON (which is YAML), cut to 60 characters."""
    text = redact(json.dumps(value, ensure_ascii=False, default=str))  # first: half a URL is no longer recognised
    return text if len(text) <= 60 else text[:59] + "…"


def all_faults(schema: type[BaseModel], data: Any, errors: Sequence[ErrorDetails]) -> list[tuple[Key, str]]:
    """Return each wrong key of `data` with one line on what is wrong.

    Misspelled keys come first, because others may only follow from them. A list that is too short merely because
    of its invalid items is left out.
    """
    faults: dict[Key, list[ErrorDetails]] = {}
    for error in errors:
        faults.setdefault(_key(data, error), []).append(error)
    inner = [key for key in faults if not any(key == other[: len(key)] and key != other for other in faults)]
    inner.sort(key=lambda key: faults[key][0]["type"] != "extra_forbidden")
    return [(key, _what(schema, key, faults[key])) for key in inner]


def _key(data: Any, error: ErrorDetails) -> Key:
    """Return the error's key in the data: pydantic's location, without the parts that name a branch of a union."""
    key: list[str] = []
    for part in error["loc"]:
        inside: Any = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(inside, dict) and part in inside:
            data = inside[part]
            key.append(str(part))
    if error["type"] == "missing":
        key.append(str(error["loc"][-1]))
    return tuple(key)


def _what(schema: type[BaseModel], key: Key, group: Sequence[ErrorDetails]) -> str:
    """Return what is wrong with one value; several errors are the branches of a union."""
    first = group[0]
    if first["type"] == "missing":
        return "is missing; it has no default"
    if first["type"] == "extra_forbidden":
        option = ".".join("N" if part.isdecimal() else part for part in key)  # as `REMOVED` has it
        if (instead := REMOVED.get(option)) is not None:
            return f"was removed: {instead}"
        known = sorted(_section(schema, key[:-1]).model_fields)
        near = difflib.get_close_matches(key[-1], known, n=1)
        return f"unknown key; did you mean '{near[0]}'?" if near else f"unknown key; known are {', '.join(known)}"
    if first["type"] == "value_error" and len(group) == 1:
        return first["msg"].removeprefix("Value error, ")
    messages = (error["msg"].removeprefix("Input should be ").removeprefix("Value error, ") for error in group)
    allowed = " or ".join(dict.fromkeys(messages))
    return f"{shown(first['input'])} is not allowed; {allowed}"


def _section(section: type[BaseModel], key: Key) -> type[BaseModel]:
    """Return the part of the schema that `key` leads to: ("benchmarks", "0") to BenchmarkConfig."""
    for part in key:
        if part in section.model_fields:
            section = next(_models(section.model_fields[part].annotation), section)
    return section


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
