"""Write docs/configuration.md, the reference of a night's configuration, from its schema.

python -m docs.configuration
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conf.schema import NightConfig

PAGE = Path(__file__).with_name("configuration.md")
HEAD = """\
# The configuration

Every value of a night, with its unit and default. Generated from `conf/schema.py` by `python -m docs.configuration`.

A configuration is a YAML 1.2 file that names what differs from the defaults; `conf/starter.yaml` is a short one.
`--set` overrides one value. Unknown keys and invalid values are refused with one line. Without `--config`, a command
uses the home's: its `config.yaml` (`nightschool init`), that of the last promotion, or `conf/starter.yaml`.

```sh
nightschool night --config conf/starter.yaml --set grpo.rounds=4 --set exam.target.problems=200
nightschool config show            # all values of the home's configuration
nightschool config diff            # those that differ from the defaults; or from a file, or a night's date
```

N is an index in a list, from 0: `--set benchmarks.0.weight=2`. Allowed values are in brackets after the default. An
option whose default is `null` may be set to it.
"""
FIRST = (  # the options that people set
    *("budget_minutes", "deadline", "student.source", "benchmarks", "stages", "grpo.rounds", "grpo.prompts_per_round"),
    *("grpo.group_size", "grpo.max_completion_tokens", "optimizer.learning_rate", "distill.steps", "lora"),
    *("exam.target", "seed", "keep_nights"),
)
TABLE = ("key | default | what", "---|---|---")
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
PLAIN = {"integer": "integer", "number": "number", "boolean": "true, false", "object": "mapping", "string": "text"}


def reference() -> str:
    """Return the page: the options that people set, then a table for each section, in the order of the schema."""
    whole = NightConfig.model_json_schema()
    sections = {name: (places, whole["$defs"][name]) for name, places in _places(whole).items()}
    above = {option: value for option, value in _options(whole) if "." not in option}
    tables = [_first(whole), _table("The night", whole, ("[above](#what-people-set)", above))]
    for name, (places, section) in sections.items():
        known = whole["$defs"]["BenchmarkConfig"]["properties"] if name == "ExamPart" else {}
        tables.append(_table(", ".join(f"`{place}`" for place in places), section, ("in `benchmarks.N`", known)))
    return "\n".join([HEAD, *tables])


def _first(whole: dict[str, Any]) -> str:
    """Return the table of the options that people set."""
    rows = [f"`{option}` | {_default(value)} | {_what(whole, value)}" for option, value in _options(whole)]
    return "\n".join(["## What people set\n", *TABLE, *rows, ""])


def _options(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each of these options with its schema."""
    for option in FIRST:
        *keys, name = option.split(".")
        section = whole
        for key in keys:
            section = whole["$defs"][next(_sections(section["properties"][key]))[0]]
        yield option, section["properties"][name]


def _what(whole: dict[str, Any], value: dict[str, Any]) -> str:
    return value.get("description") or whole["$defs"][next(_sections(value))[0]]["description"]


def _places(whole: dict[str, Any]) -> dict[str, list[str]]:
    """Return the paths of each section, by the name of its class."""
    found: dict[str, list[str]] = {}

    def walk(section: dict[str, Any], place: str) -> None:
        for key, value in section["properties"].items():
            for name, in_list in _sections(value):
                found.setdefault(name, []).append(f"{place}{key}{'.N' * in_list}")
                walk(whole["$defs"][name], f"{found[name][-1]}.")

    walk(whole, "")
    return found


def _sections(value: dict[str, Any], in_list: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the sections that a value or its list may hold, and whether it is a list."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2], in_list
    for branch in value.get("anyOf", ()):
        yield from _sections(branch, in_list)
    if "items" in value:
        yield from _sections(value["items"], True)


def _table(title: str, section: dict[str, Any], same: tuple[str, dict[str, Any]] = ("", {})) -> str:
    """Return a section's table, without its sections, which have tables of their own.

    `same`: the keys of another table, and where that is. Those that are the same here are not described again.
    """
    place, known = same
    again = [key for key, value in section["properties"].items() if known.get(key) == value]
    rows = [
        f"`{key}` | {_default(value)}{_in_brackets(value)} | {value.get('description', '')}".replace("\n", " ")
        for key, value in section["properties"].items()
        if "$ref" not in value and key not in again
    ]
    below = [f"\n{', '.join(f'`{key}`' for key in again)}: as {place}."] if again else []
    return "\n".join([f"## {title}\n", section["description"] + "\n", *TABLE, *rows, *below, ""])


def _default(value: dict[str, Any]) -> str:
    return f"`{json.dumps(value['default'], ensure_ascii=False)}`" if "default" in value else "required"


def _in_brackets(value: dict[str, Any]) -> str:
    """Return the allowed values in brackets: the whole of it, or its limits if the default shows the type."""
    allowed = _allowed(value)
    if value.get("default") is not None and "anyOf" not in value:
        allowed = re.sub(r"^(true, false|mapping|text|integer|number)\b ?", "", allowed)
    return f" ({allowed})" if allowed else ""


def _allowed(value: dict[str, Any]) -> str:
    """Return the allowed values in words."""
    if "$ref" in value:
        return "section"
    if "anyOf" in value:
        return ", or ".join(dict.fromkeys(branch for branch in map(_allowed, value["anyOf"]) if branch != "null"))
    if "enum" in value or "const" in value:
        return ", ".join(f"`{name}`" for name in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return _of_list(value)
    if "minimum" in value and value["minimum"] == value.get("maximum"):
        return f"{value['minimum']:g}"
    limits = [f" {sign} {value[limit]:g}" for limit, sign in LIMITS.items() if limit in value]
    return PLAIN.get(value.get("type", ""), "null") + ",".join(limits)


def _of_list(value: dict[str, Any]) -> str:
    if "prefixItems" in value:
        return f"two: {'; '.join(map(_allowed, value['prefixItems']))}"
    least = f", ≥ {value['minItems']}" if "minItems" in value else ""
    return f"list of {_allowed(value['items'])}{least}"


if __name__ == "__main__":
    PAGE.write_text(reference())
