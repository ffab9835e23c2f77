"""The lines of the day's journal, as validated models."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

VERSION = 1
LONGEST_LINE = 1_000_000  # bytes


class Message(BaseModel):
    """One turn of a conversation."""

    model_config = ConfigDict(frozen=True)
    role: Literal["system", "user", "assistant"]
    content: str


class Line(BaseModel):
    """What all lines have. Keys that this version does not know are left alone: others may write them."""

    model_config = ConfigDict(frozen=True, extra="allow")
    version: Literal[1]
    at: str


class Preference(Line):
    """Several answers were shown, and the owner picked one."""

    kind: Literal["preference"]
    messages: Annotated[list[Message], Field(min_length=1)]
    responses: Annotated[list[str], Field(min_length=2)]
    chosen: Annotated[int, Field(ge=0)]
    policy: str

    @model_validator(mode="after")
    def the_pick_was_shown(self) -> "Preference":
        """The index must be one of the answers'."""
        if self.chosen >= len(self.responses):
            raise ValueError(f"chosen is {self.chosen}, but there are {len(self.responses)} responses (0 is the first)")
        return self


class Correction(Line):
    """The owner rewrote an answer."""

    kind: Literal["correction"]
    messages: Annotated[list[Message], Field(min_length=1)]
    response: str
    correction: Annotated[str, Field(min_length=1)]


class Feedback(Line):
    """The owner praised or scolded an answer."""

    kind: Literal["feedback"]
    messages: Annotated[list[Message], Field(min_length=1)]
    response: str
    value: Annotated[float, Field(ge=-1, le=1)]


class Words(Line):
    """Free text to read."""

    kind: Literal["words"]
    text: Annotated[str, Field(min_length=1)]


class Trace(Line):
    """A better model's worked solution."""

    kind: Literal["trace"]
    messages: Annotated[list[Message], Field(min_length=1)]
    response: Annotated[str, Field(min_length=1)]
    teacher: str
    benchmark: str | None = None
    truth: str | None = None


Entry = Annotated[Preference | Correction | Feedback | Words | Trace, Field(discriminator="kind")]
_ENTRY: TypeAdapter[Any] = TypeAdapter(Entry)


def parse_line(line: bytes) -> Preference | Correction | Feedback | Words | Trace:
    """One line of the journal. Raises ValueError with a reason of one line where it is none."""
    if len(line) > LONGEST_LINE:
        raise ValueError(f"{len(line)} bytes; at most {LONGEST_LINE} are allowed")
    try:
        return _ENTRY.validate_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg']}".removeprefix(": ").replace("\n", " ")) from error
