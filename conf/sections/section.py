"""The base class of all sections of the configuration, and the types that the sections share."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
# A branch, tag or commit on a hub. No part may be `..`, because the hub's client makes folders of the parts.
HubRevision = Annotated[str, Field(pattern=r"^\w[\w-]*([./][\w-]+)*$")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
T = TypeVar("T")
_NOT_IN_IDENTITY = "not in identity"
# Marks a field that can change while the night stays the same night, such as the deadline or a service's address.
NotInIdentity = Annotated[T, _NOT_IN_IDENTITY]


def checked(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator that refuses a text for which `check` raises ValueError."""

    def unchanged(text: str) -> str:
        check(text)
        return text

    return AfterValidator(unchanged)


class Section(BaseModel):
    """An immutable configuration section that rejects unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def identity(self) -> dict[str, Any]:
        """Return this section as JSON values, leaving out `NotInIdentity` fields at any depth."""
        return self.model_dump(mode="json", exclude=_excluded(self))


def _excluded(section: Section) -> dict[str, Any]:
    """Return the fields that are `NotInIdentity`, in the form that `model_dump` takes as `exclude`."""
    fields: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if _NOT_IN_IDENTITY in field.metadata:
            fields[name] = True
        elif isinstance(value, Section) and (within := _excluded(value)):
            fields[name] = within
    return fields
