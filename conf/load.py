"""Load a night's configuration: read a YAML file, apply the command line's overrides, and validate the result.

Any mistake raises a one-line `InputError` that names the key, the value and what is allowed.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from conf.schema import NightConfig
from conf.sections.errors import Key, all_faults, fault, shown
from conf.storage.durable import read_json
from conf.storage.home import NIGHTS, SUMMARY, Home, InputError

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
FROZEN = "# This night's configuration, as resolved when it started."
STARTER = Path(__file__).parent / "starter.yaml"  # the default configuration

_ABSENT = object()


@dataclass
class _Draft:
    """A raw configuration to which overrides are applied, and a record of the override that wrote each key."""

    file: Path
    data: dict[str, Any]
    origins: dict[Key, tuple[Key, str]] = field(default_factory=dict)

    def override(self, text: str) -> None:
        """Apply an override like `grpo.rounds=4`. Raises InputError if it has no '=', a bad key or invalid YAML."""
        name, equals, value = text.partition("=")
        key = tuple(name.strip().split("."))
        if not equals or not all(key):
            raise fault(f"--set {text}: must look like KEY=VALUE, for example --set grpo.rounds=4")
        holder: Any = self.data
        for depth, part in enumerate(key):
            holder, part = _enter(holder, part, f"--set {text}", ".".join(key[:depth]))
            last = depth == len(key) - 1
            if last or (isinstance(holder, dict) and part not in holder) or holder[part] is None:
                self.origins[key[: depth + 1]] = (key, text)
                holder[part] = _parse(value, f"--set {text}") if last else {}
            holder = holder[part]

    def error(self, faults: Sequence[tuple[Key, str]]) -> InputError:
        """Return one error that lists all faults, each attributed to the file or the override that wrote the value."""
        parts: list[str] = []
        previous = ""
        for key, what in faults:
            source, text = self._attribute(key, what)
            parts.append(text if source == previous else f"{source}: {text}")
            previous = source
        return fault("; also ".join(parts))

    def _attribute(self, key: Key, what: str) -> tuple[str, str]:
        for length in range(len(key), 0, -1):
            if key[:length] in self.origins:
                written, text = self.origins[key[:length]]
                return f"--set {text}", what if key == written[: len(key)] else f"{'.'.join(key)}: {what}"
        return str(self.file), f"{'.'.join(key)}: {what}" if key else what


def load_night(path: Path, overrides: Sequence[str] = ()) -> NightConfig:
    """Return the validated configuration in `path`, with overrides like `benchmarks.0.weight=2` applied.

    In a night's frozen configuration, unknown keys are ignored, because later versions may have removed options.
    Raises InputError if the file cannot be read or is not YAML, or if an override or the configuration is invalid.
    """
    content = _read(path)
    data = _parse(content, str(path))
    if not isinstance(data, dict):
        raise fault(f"{path}: {shown(data)} is not allowed; must be a mapping, a line `key: value` for each key")
    if content.startswith(FROZEN):
        _without_removed_values(data)
        data = _validated(_Draft(path, data), "ignore").model_dump(mode="json")
    draft = _Draft(path, data)
    for text in overrides:
        draft.override(text)
    return _validated(draft, "forbid")


def _without_removed_values(frozen: dict[str, Any]) -> None:
    """Replace the values that earlier versions allowed in a night's configuration."""
    if isinstance(judge := frozen.get("judge"), dict) and judge.get("endpoint") is None:
        frozen["judge"] = None  # it was a checkpoint, which is no longer served
    for stage in frozen.get("stages") or []:
        if isinstance(stage, dict) and "on_policy" in stage:
            stage["grpo"] = stage.pop("on_policy")
    if isinstance(grpo := frozen.get("grpo"), dict) and grpo.get("credit") == "gigpo":
        grpo["credit"] = "episode"


def _validated(draft: _Draft, extra: Literal["ignore", "forbid"]) -> NightConfig:
    # In JSON, pydantic's strict mode accepts a list for a tuple, but still refuses "4" for 4.
    try:
        return NightConfig.model_validate_json(json.dumps(draft.data), strict=True, extra=extra)
    except ValidationError as error:
        raise draft.error(all_faults(NightConfig, draft.data, error.errors(include_url=False))) from None


def config_of(night: Path) -> NightConfig | None:
    """Return the frozen configuration in a night's folder, or None if there is none yet or it cannot be loaded."""
    try:
        return load_night(night / "config.yaml")
    except InputError:
        return None


def own_file(home: Home, date: str | None = None) -> Path:
    """Return the file of the configuration that a home's commands use unless another is named.

    That is, in this order: of the night of `date`, if it has begun; the home's `config.yaml`, if there is one (see
    `nightschool init`); of the last night that promoted its candidate; the starter night's.
    """
    if date is not None and DATE.fullmatch(date) and config_of(home.nights / date):
        return home.nights / date / "config.yaml"
    if home.config_file.exists():
        return home.config_file
    summaries = sorted(home.nights.glob(f"{NIGHTS}/{SUMMARY}"), reverse=True)
    promoted = (file.parent for file in summaries if read_json(file, {}).get("decision") == "promoted")
    return next((night / "config.yaml" for night in promoted if config_of(night)), STARTER)


def frozen_yaml(config: NightConfig) -> str:
    """Return the whole configuration, including defaults, as the YAML that is stored in a night's folder."""
    yaml = _yaml()
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # None in ruamel
    yaml.allow_unicode = "\x85" not in config.model_dump_json()  # unless escaped, this line break is read as a space
    text = io.StringIO(newline="")
    yaml.dump(config.model_dump(mode="json"), text)
    return f"{FROZEN}\n{text.getvalue()}"


def identity(config: NightConfig) -> str:
    """Return the SHA-256 (hex) of the settings that identify a night: all except those marked `NotInIdentity`."""
    canonical = json.dumps(config.identity(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def differences(one: NightConfig, other: NightConfig, identifying: bool = True) -> list[str]:
    """Return a line such as `grpo.rounds: 4 → 6` for each setting that differs; by default, only identifying ones."""
    first, second = (each.identity() if identifying else each.model_dump(mode="json") for each in (one, other))
    return list(_differences(first, second, ()))


def _differences(one: Any, other: Any, key: Key) -> Iterator[str]:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = ({str(index): item for index, item in enumerate(side)} for side in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            yield from _differences(one.get(name, _ABSENT), other.get(name, _ABSENT), (*key, name))
    elif one != other or type(one) is not type(other):
        was, becomes = ("absent" if side is _ABSENT else shown(side) for side in (one, other))
        yield f"{'.'.join(key)}: {was} → {becomes}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise fault(f"{path}: no such file; conf/starter.yaml is an example to start from") from None
    except OSError as error:
        raise fault(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise fault(f"{path}: byte {error.start} is not UTF-8; a configuration is YAML text") from None


def _yaml() -> YAML:
    """Return a YAML 1.2 reader and writer: 1e-4 is a number, 22:15 is text, and a repeated key is an error."""
    return YAML(typ="safe", pure=True)


def _parse(text: str, source: str) -> Any:
    """Parse YAML `text` into JSON values. An error names the line and column, unless `source` is an override."""
    try:
        return json.loads(json.dumps(_yaml().load(text), default=str))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark and not source.startswith("--set") else ""
        raise fault(f"{source}: {where}not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError, TypeError) as error:
        raise fault(f"{source}: not valid YAML: {error}") from None
    except RecursionError:
        raise fault(f"{source}: not valid YAML: nested too deep") from None


def _enter(holder: Any, part: str, source: str, name: str) -> tuple[Any, str | int]:
    """Return `holder`, and `part` as its key or list index. Raises InputError if `holder` cannot have such an item."""
    if isinstance(holder, dict):
        return holder, part
    if not isinstance(holder, list):
        raise fault(f"{source}: {name} is {shown(holder)}, which has no keys")
    if not part.isdecimal() or int(part) >= len(holder):
        allowed = f"use 0 to {len(holder) - 1}" if holder else f"{name} is empty; give all of it: --set '{name}=[…]'"
        raise fault(f"{source}: {name}.{part} does not exist; {allowed}")
    return holder, int(part)
