"""The reference of the configuration is the schema's own, and leaves nothing out."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from conf.schema import NightConfig
from docs.configuration import PAGE, reference


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a value of this type may hold, however it is wrapped."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from sections(inner)


def keys(section: type[BaseModel], place: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    """Every key of the schema, found without its JSON form: where it stands, in which section, its name."""
    for name, field in section.model_fields.items():
        yield f"{place}{name}", section, name
        for inner in sections(field.annotation):
            yield from keys(inner, f"{place}{name}.")


def test_the_page_is_the_schemas_own() -> None:
    assert PAGE.read_text() == reference(), "run: python -m docs.configuration"


def test_every_key_is_described_with_its_default() -> None:
    page = reference()
    for place, section, name in keys(NightConfig):
        field = section.model_fields[name]
        in_table = field.annotation not in set(sections(field.annotation))  # a section has a table of its own
        assert not in_table or field.description, f"{place}: no description"
        assert f"\n`{name}` | " in page if in_table else f"{name}`" in page, place
