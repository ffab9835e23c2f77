"""Reads a night's configuration: a YAML file, then the command line's overrides, then validation.

Whatever is wrong is an `InputError` of one line that names the place, the value and what is allowed.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from conf.config_errors import Key, dotted, fault, first_fault, shown
from conf.schema import NightConfig
from conf.storage.home import InputError

STARTER = Path(__file__).parent / "starter.yaml"  # the embedded default

_ABSENT = object()


class _Loader(yaml.SafeLoader):
    """YAML, but 1e-4 is a number (PyYAML wants 1.0e-4), and a key that stands twice is refused."""


class _Dumper(yaml.SafeDumper):
    """Writes what `_Loader` reads back: the text "1e-4" gets quotes."""


# YAML 1.1 reads 22:15 as the number 1335, in base 60; people, and YAML 1.2, read a time of day.
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(f"(?!.*:)(?:{kind.pattern})", kind.flags) if tag in _NUMBERS else kind) for tag, kind in kinds
    ]
    for first, kinds in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
        seen.add(str(key.value))
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _finite(loader: _Loader, node: yaml.ScalarNode) -> float:
    value = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise yaml.MarkedYAMLError(None, None, f"{node.value} is no finite number", node.start_mark)
    return value


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    # PyYAML writes these line breaks as they are, outside double quotes, and reads them as \n
    quotes = '"' if re.search("[\x85\u2028\u2029]", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=quotes)


_Dumper.add_representer(str, _text)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:float", _finite)


@dataclass
class _Draft:
    """The raw configuration while overrides are laid on it, and which override wrote which key."""

    file: Path
    data: dict[str, Any]
    origins: dict[Key, tuple[Key, str]] = field(default_factory=dict)

    def override(self, text: str) -> None:
        """Apply `grpo.rounds=4`. InputError when it has no '=', is not YAML, or has no such place."""
        place, equals, value = text.partition("=")
        key = tuple(place.strip().split("."))
        if not equals or not all(key):
            raise fault(f"--set {text}", "must look like KEY=VALUE, for example --set grpo.rounds=4")
        holder: Any = self.data
        for depth, part in enumerate(key):
            holder, part = _enter(holder, part, f"--set {text}", ".".join(key[:depth]))
            last = depth == len(key) - 1
            if last or not _has(holder, part) or holder[part] is None:
                self.origins[key[: depth + 1]] = (key, text)
                holder[part] = _parse(value, f"--set {text}") if last else {}
            holder = holder[part]

    def complaint(self, key: Key, what: str) -> InputError:
        """The error for the value at `key`, in the name of whoever wrote it: the file or an override."""
        for length in range(len(key), 0, -1):
            if key[:length] in self.origins:
                written, text = self.origins[key[:length]]
                return fault(f"--set {text}", what if key == written[: len(key)] else f"{dotted(key)}: {what}")
        return fault(str(self.file), f"{dotted(key)}: {what}" if key else what)


def load_night(path: Path, overrides: Sequence[str] = ()) -> NightConfig:
    """The validated configuration in `path`, with overrides like `benchmarks.0.weight=2` laid on it.

    Raises InputError for a file that cannot be read, is not YAML or is no valid configuration.
    """
    draft = _Draft(path, _read(path))
    for text in overrides:
        draft.override(text)
    # In JSON, pydantic's strict mode takes a list for a tuple, and still refuses "4" for 4.
    resolved = json.dumps(draft.data, default=str)
    try:
        return NightConfig.model_validate_json(resolved, strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise draft.complaint(*first_fault(NightConfig, json.loads(resolved), faults)) from None


def config_of(night: Path) -> NightConfig | None:
    """The configuration that a night's folder was frozen with; None of one not frozen yet, or of another version."""
    try:
        return load_night(night / "config.yaml")
    except InputError:
        return None


def frozen_yaml(config: NightConfig) -> str:
    """The whole configuration, defaults included, as the YAML that a night's folder keeps."""
    head = "# This night's configuration, as it was resolved at its start.\n"
    return head + yaml.dump(config.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def identity(config: NightConfig) -> str:
    """SHA-256 (hex) of what makes this night this night: all but ports, URLs, deadline and budget."""
    canonical = json.dumps(config.identity(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def differences(one: NightConfig, other: NightConfig) -> list[str]:
    """What tells two nights apart, a line a key: `grpo.rounds: 4 → 6`. Empty where `identity` agrees."""
    return list(_differences(one.identity(), other.identity(), ()))


def _differences(one: Any, other: Any, key: Key) -> Iterator[str]:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = _numbered(one), _numbered(other)
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            yield from _differences(one.get(name, _ABSENT), other.get(name, _ABSENT), (*key, name))
    elif one != other or type(one) is not type(other):
        was, becomes = ("absent" if side is _ABSENT else shown(side) for side in (one, other))
        yield f"{dotted(key)}: {was} → {becomes}"


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(place): item for place, item in enumerate(items)}


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise fault(str(path), "no such file; conf/starter.yaml is one to start from") from None
    except OSError as error:
        raise fault(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise fault(str(path), f"byte {error.start} is not UTF-8; a configuration is a YAML text") from None
    data = _parse(text, str(path))
    if not isinstance(data, dict):
        raise fault(str(path), f"{shown(data)} is not allowed; must be a mapping, a line `key: value` for each key")
    return data


def _parse(text: str, place: str) -> Any:
    """The YAML `text` as plain Python. Line and column are named where there is more than one line."""
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark and not place.startswith("--set") else ""
        raise fault(place, f"{where}not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise fault(place, f"not valid YAML: {error}") from None
    except RecursionError:
        raise fault(place, "not valid YAML: nested too deep") from None


def _enter(holder: Any, part: str, place: str, name: str) -> tuple[Any, str | int]:
    """`part` as a key of `holder`, which must be a mapping, or a list that has such an item."""
    if isinstance(holder, dict):
        return holder, part
    if not isinstance(holder, list):
        raise fault(place, f"{name} is {shown(holder)}, which has no keys")
    if not part.isdecimal() or int(part) >= len(holder):
        allowed = f"0 to {len(holder) - 1}" if holder else f"{name} is empty; give all of it: --set '{name}=[…]'"
        raise fault(place, f"{name}.{part} is not there; {allowed}")
    return holder, int(part)


def _has(holder: Any, part: str | int) -> bool:
    return isinstance(holder, list) or part in holder
