"""The lines of the day's journal, as validated models: a public format, described in docs/journal.md."""

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

VERSION = 1
LONGEST_LINE = 1_000_000  # bytes
IMPORTED = "imported"  # the policy of a pick that came with a data set
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Message(BaseModel):
    """One turn of a conversation."""

    model_config = ConfigDict(frozen=True)
    role: Literal["system", "user", "assistant"]
    content: str


class Line(BaseModel):
    """What all lines have. Keys that this version does not know are left alone: others may write them."""

    model_config = ConfigDict(frozen=True, extra="allow")
    version: Literal[1] = Field(description="of this format")
    at: str = Field(description="when it was said: a date or a time in ISO 8601, without a zone the machine's own")
    imported_from: str | None = Field(default=None, description="the data set that it came with, by `journal import`")

    @field_validator("at")
    @classmethod
    def a_time(cls, at: str) -> str:
        """The time must be one."""
        try:
            datetime.datetime.fromisoformat(at)
        except ValueError:
            raise ValueError(f"{at[:40]!r} is no date or time in ISO 8601, as 2026-11-20T21:05:00+01:00") from None
        return at

    @property
    def day(self) -> datetime.date:
        """The date that it says."""
        return datetime.datetime.fromisoformat(self.at).date()


class Answer(Line):
    """What all lines about an answer have."""

    messages: Annotated[list[Message], Field(min_length=1)] = Field(
        description="the conversation up to the answer; its last turn is the user's"
    )

    @model_validator(mode="after")
    def an_answer_is_due(self) -> "Answer":
        """The last turn must be the user's: what follows is the answer."""
        if self.messages[-1].role != "user":
            raise ValueError(f"messages: the last turn is the {self.messages[-1].role}'s, not the user's")
        return self


class Preference(Answer):
    """Several answers were shown, and the owner picked one."""

    kind: Literal["preference"]
    responses: Annotated[list[Text], Field(min_length=2)] = Field(description="the answers shown, not all the same")
    chosen: Annotated[int, Field(ge=0)] = Field(description="place of the one picked; 0 is the first")
    policy: Text = Field(description=f'who answered: the digest of a checkpoint, or "{IMPORTED}"')

    @model_validator(mode="after")
    def the_pick_says_something(self) -> "Preference":
        """The index must be one of the answers', and there must be something to choose between."""
        if self.chosen >= len(self.responses):
            raise ValueError(f"chosen is {self.chosen}, but there are {len(self.responses)} responses (0 is the first)")
        if len(set(self.responses)) == 1:
            raise ValueError(f"all {len(self.responses)} responses are the same: a pick among them says nothing")
        return self


class Correction(Answer):
    """The owner rewrote an answer."""

    kind: Literal["correction"]
    response: str = Field(description="the answer as it was")
    correction: Text = Field(description="the answer as it should be")

    @model_validator(mode="after")
    def something_was_corrected(self) -> "Correction":
        """The two must differ."""
        if self.correction == self.response:
            raise ValueError("correction is the response itself: nothing was corrected")
        return self


class Feedback(Answer):
    """The owner praised or scolded an answer."""

    kind: Literal["feedback"]
    response: Text = Field(description="the answer")
    value: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = Field(description="1 praises, -1 scolds")


class Words(Line):
    """Free text to read."""

    kind: Literal["words"]
    text: Text


class Trace(Answer):
    """A better model's worked solution."""

    kind: Literal["trace"]
    response: Text = Field(description="the solution")
    teacher: str = Field(description="who wrote it")
    benchmark: str | None = Field(default=None, description="the benchmark whose verifier can judge it")
    truth: str | None = Field(default=None, description="the true answer, as that benchmark writes it")


Entry = Preference | Correction | Feedback | Words | Trace
_ENTRY: TypeAdapter[Any] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])
KINDS = {"preference": Preference, "correction": Correction, "feedback": Feedback, "words": Words, "trace": Trace}


def parse_line(line: bytes, today: datetime.date | None = None) -> Entry:
    """One line of the journal. Raises ValueError with a reason of one line where it is none.

    With `today`, a line that says it is of a later day than tomorrow is refused too.
    """
    if len(line) > LONGEST_LINE:
        raise ValueError(f"{len(line)} bytes; at most {LONGEST_LINE} are allowed")
    try:
        entry = _ENTRY.validate_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from error
    except ValidationError as error:
        raise ValueError(_reason(error)) from error
    if today and entry.day - today > datetime.timedelta(days=1):
        raise ValueError(f"at: {entry.at} is in the future, more than a day after {today}")
    return entry


def entry_of(fields: Mapping[str, Any]) -> Entry:
    """An entry from its keys, of which `version` and `at` (now) may be left out.

    Raises ValueError or TypeError with a reason of one line where they make none that a freeze would take.
    """
    now = datetime.datetime.now().astimezone()
    given = {"version": VERSION, "at": now.isoformat(timespec="seconds"), **fields}
    return parse_line(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode(), now.date())


def line_of(entry: Entry) -> bytes:
    """The entry as a line of the journal, its end included. Raises ValueError where it is too long for one."""
    line = entry.model_dump_json(exclude_none=True).encode() + b"\n"
    if len(line) - 1 > LONGEST_LINE:
        raise ValueError(f"{len(line) - 1} bytes; at most {LONGEST_LINE} are allowed")
    return line


def lesson_of(entry: Entry) -> str:
    """A digest of what an entry teaches, whenever it was said and whatever others wrote beside it.

    Two lines that have it in common are duplicates.
    """
    taught = entry.model_dump(include=set(type(entry).model_fields) - {"version", "at", "imported_from"})
    return hashlib.sha256(json.dumps(taught, sort_keys=True).encode()).hexdigest()


def schema() -> str:
    """The JSON Schema of a line, as docs/journal.schema.json has it."""
    described = {"$schema": SCHEMA_ID, "title": "A line of a Night school journal", "$comment": f"version {VERSION}"}
    return json.dumps(described | _ENTRY.json_schema(), indent=2, ensure_ascii=False) + "\n"


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = "is blank" if first["type"] == "string_pattern_mismatch" else first["msg"].removeprefix("Value error, ")
    return f"{where}: {what}".removeprefix(": ").replace("\n", " ")
