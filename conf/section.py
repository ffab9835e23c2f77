"""What all parts of the configuration have in common."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
# A branch, tag or commit of a hub: no part of it may be .., because the hub's client makes folders of it
HubRevision = Annotated[str, Field(pattern=r"^\w[\w-]*([./][\w-]+)*$")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
T = TypeVar("T")
_OUTWARD = "outward"
# What makes no other night of a night: where its services are, who is told, by when it must end
NotInIdentity = Annotated[T, _OUTWARD]


class Section(BaseModel):
    """A part of the configuration: frozen, and no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def identity(self) -> dict[str, Any]:
        """This part as JSON, without what is `NotInIdentity`, in it or in a part of it."""
        return self.model_dump(mode="json", exclude=_outward(self))


def _outward(section: Section) -> dict[str, Any]:
    """The outward fields, as `model_dump` is told to leave them out."""
    found: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if _OUTWARD in field.metadata:
            found[name] = True
        elif isinstance(value, Section) and (within := _outward(value)):
            found[name] = within
    return found
