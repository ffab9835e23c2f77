"""What all parts of the configuration have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
# A branch, tag or commit of a hub: no part of it may be .., because the hub's client makes folders of it
HubRevision = Annotated[str, Field(pattern=r"^\w[\w-]*([./][\w-]+)*$")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    """A part of the configuration: frozen, and no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())
