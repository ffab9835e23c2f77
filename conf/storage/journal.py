"""The lines of the journal as validated models: a public format, described in docs/journal.md."""

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

VERSION = 1
LONGEST_LINE = 1_000_000  # bytes
IMPORTED = "imported"  # the policy of picks from an imported data set
TODAY = "today"  # the policy of what the day copy wrote, and its name as a served model
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"

# Extra keys that the classroom adds to its lines. The public format does not define them.
LESSON = "lesson"  # the lesson's name: lines with the same name form one lesson
LIVE = "live"  # whether the day copy learns the line at once; otherwise, only the night does
HELD_OUT = "held_out"  # whether the conversation is held out for judging, and never trained on
SESSION = "session"  # identifies the run of `nightschool teach`
CONVERSATION = "conversation"  # the name of the conversation that the line records or is about
POLICIES = "policies"  # of a pick: which models sampled each answer, `day` or `champion`
FROM_CHAR = "from_char"  # of feedback: index of the character at which the answer becomes wrong
IMPLICIT = "implicit"  # of a rating that the owner implied but did not give: `went_on` or `left`
UNFINISHED = "unfinished"  # texts of the answers that lack an end token because they were stopped or cut off

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]

Rating = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
TURN_DECAY = 0.9  # a reward also counts for earlier assistant turns, times this factor per turn


class Message(BaseModel):
    """One turn of a conversation."""

    model_config = ConfigDict(frozen=True)
    role: Literal["system", "user", "assistant"]
    content: str


class Line(BaseModel):
    """The fields of every line. Unknown keys are kept: other programs may write them."""

    model_config = ConfigDict(frozen=True, extra="allow")
    version: Literal[1] = Field(description="version of the format")
    at: str = Field(description="date or time in ISO 8601; if it has no zone, the machine's applies")
    imported_from: str | None = Field(default=None, description="data set from which `journal import` took the line")

    @field_validator("at")
    @classmethod
    def a_time(cls, at: str) -> str:
        """Refuse a text that is not a date or time."""
        try:
            datetime.datetime.fromisoformat(at)
        except ValueError:
            raise ValueError(
                f"{at[:40]!r} is not a date or time in ISO 8601, such as 2026-11-20T21:05:00+01:00"
            ) from None
        return at

    @property
    def day(self) -> datetime.date:
        """The date part of the line's `at`."""
        return datetime.datetime.fromisoformat(self.at).date()

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The line's messages, each with its `role` and `content`; empty if the line has none."""
        return [message.model_dump() for message in getattr(self, "messages", ())]

    def extra(self, key: str) -> Any:
        """Return the value of a key that the format does not define, or None."""
        return (self.model_extra or {}).get(key)


class Answer(Line):
    """The fields of every line about an answer."""

    messages: Annotated[list[Message], Field(min_length=1)] = Field(
        description="the conversation up to the answer; its last turn is the user's"
    )

    @model_validator(mode="after")
    def an_answer_is_due(self) -> "Answer":
        """Refuse a conversation whose last turn is not the user's."""
        if self.messages[-1].role != "user":
            raise ValueError(f"messages: the last turn is the {self.messages[-1].role}'s, not the user's")
        return self


class Preference(Answer):
    """The owner picked one of several answers."""

    kind: Literal["preference"]
    responses: Annotated[list[Text], Field(min_length=2)] = Field(description="the answers shown, not all the same")
    chosen: Annotated[int, Field(ge=0)] = Field(description="index of the picked answer; 0 is the first")
    policy: Text = Field(description=f'digest of the checkpoint that answered, or "{IMPORTED}"')

    @model_validator(mode="after")
    def the_pick_says_something(self) -> "Preference":
        """Refuse an index beyond the answers, and answers that are all the same."""
        if self.chosen >= len(self.responses):
            raise ValueError(f"chosen is {self.chosen}, but there are {len(self.responses)} responses (0 is the first)")
        if len(set(self.responses)) == 1:
            raise ValueError(f"all {len(self.responses)} responses are the same: a pick among them says nothing")
        return self


class Correction(Answer):
    """The owner rewrote an answer."""

    kind: Literal["correction"]
    response: str = Field(description="the answer before the correction")
    correction: Text = Field(description="the answer that the owner wants")

    @model_validator(mode="after")
    def something_was_corrected(self) -> "Correction":
        """Refuse a correction that changes nothing."""
        if self.correction == self.response:
            raise ValueError("correction and response are the same")
        return self


class Feedback(Answer):
    """The owner rated an answer."""

    kind: Literal["feedback"]
    response: Text = Field(description="the answer")
    value: Rating = Field(description="from -1 (bad) to 1 (good)")


class Conversation(Line):
    """A conversation that the owner rated as a whole or at some turns, or one that was recorded and teaches nothing."""

    kind: Literal["conversation"]
    messages: Annotated[list[Message], Field(min_length=2)] = Field(
        description="the whole conversation; its last turn is the assistant's"
    )
    rewards: list[Rating | None] | None = Field(
        default=None,
        description="one for each turn of the assistant, from -1 (bad) to 1 (good); null: not rated; if absent, the "
        "line only records the conversation",
    )
    policy: Text | None = Field(
        default=None, description=f'digest of the checkpoint that wrote the last turn; "{TODAY}": the day copy'
    )

    @model_validator(mode="after")
    def each_turn_has_a_reward(self) -> "Conversation":
        """Refuse rewards that do not match the assistant's turns, or that are all 0 or null."""
        turns = len(self._answers)
        if self.messages[-1].role != "assistant":
            raise ValueError(f"messages: the last turn is the {self.messages[-1].role}'s, not the assistant's")
        if self.rewards is None:
            return self
        if len(self.rewards) != turns:
            raise ValueError(f"rewards: {len(self.rewards)}, but the assistant has {turns} turns")
        if not any(self.rewards):
            raise ValueError("rewards: none but 0, which says nothing")
        return self

    @property
    def values(self) -> list[float]:
        """The value of each assistant turn, in [-1, 1]: its reward plus later rewards, discounted by 0.9 per turn."""
        values, later = list[float](), 0.0
        for reward in reversed(self.rewards or [None] * len(self._answers)):
            later = min(max((reward or 0.0) + TURN_DECAY * later, -1.0), 1.0)
            values.insert(0, later)
        return values

    @property
    def ratings(self) -> list[Feedback]:
        """The assistant's non-blank replies to the user as rated answers, each with the conversation before it.

        Empty for a conversation that was only recorded.
        """
        if self.rewards is None:
            return []
        common = {"version": self.version, "at": self.at, "imported_from": self.imported_from, "kind": "feedback"}
        common |= {UNFINISHED: cut} if (cut := self.extra(UNFINISHED)) else {}
        return [
            Feedback.model_validate(common | {"messages": self.messages[:turn], "response": text, "value": value})
            for (turn, text), value in zip(self._answers, self.values, strict=True)
            if text.strip() and self.messages[turn - 1].role == "user"
        ]

    @property
    def _answers(self) -> list[tuple[int, str]]:
        return [(turn, message.content) for turn, message in enumerate(self.messages) if message.role == "assistant"]


class Words(Line):
    """Free text for the model to read."""

    kind: Literal["words"]
    text: Text


class Trace(Answer):
    """A worked solution by a better model."""

    kind: Literal["trace"]
    response: Text = Field(description="the solution")
    teacher: str = Field(description="who wrote it")
    benchmark: str | None = Field(default=None, description="the benchmark that can verify the solution")
    truth: str | None = Field(default=None, description="the correct answer, as that benchmark writes it")


Entry = Preference | Correction | Feedback | Conversation | Words | Trace
_ENTRY: TypeAdapter[Any] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])
KINDS = ("preference", "correction", "feedback", "conversation", "words", "trace")


def read_object(line: bytes) -> dict[str, Any]:
    """Parse a line as a JSON object. Raises ValueError with a one-line reason if it is not one."""
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not valid JSON: nested too deep") from None
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    if rb"\ud" in line.lower():
        try:
            json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair (an emoji that was cut in two), which is no character") from None
    return fields


def parse_line(line: bytes, today: datetime.date | None = None) -> Entry:
    """Parse a line of the journal. Raises ValueError with a one-line reason if the line is invalid.

    If `today` is given, a line dated more than one day after it is also refused.
    """
    if len(line) > LONGEST_LINE:
        raise ValueError(f"{len(line)} bytes; at most {LONGEST_LINE} are allowed")
    try:
        entry = _ENTRY.validate_python(read_object(line))
    except ValidationError as error:
        raise ValueError(_reason(error)) from None
    if today and entry.day - today > datetime.timedelta(days=1):
        raise ValueError(f"at: {entry.at} is in the future, more than a day after {today}")
    return entry


def entry_of(fields: Mapping[str, Any]) -> Entry:
    """Build a journal entry from its fields. `version` and `at` (default: now) may be left out.

    Raises ValueError with a one-line reason if a night would refuse the entry.
    """
    now = datetime.datetime.now().astimezone()
    given = {"version": VERSION, "at": now.isoformat(timespec="seconds"), **fields}
    return parse_line(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode(), now.date())


def line_of(entry: Entry) -> bytes:
    """Return the entry as a line of the journal, including the line break."""
    return entry.model_dump_json(exclude_none=True).encode() + b"\n"


def lesson_digest(entry: Entry) -> str:
    """Return a digest (20 hex digits) of an entry without `version`, `at`, `imported_from` and unknown keys."""
    fields = entry.model_dump(include=set(type(entry).model_fields) - {"version", "at", "imported_from"})
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:20]


def schema() -> str:
    """Return the JSON Schema of a journal line, published as docs/journal.schema.json."""
    described = {"$schema": SCHEMA_ID, "title": "A line of a Night school journal", "$comment": f"version {VERSION}"}
    return json.dumps(described | _ENTRY.json_schema(), indent=2, ensure_ascii=False) + "\n"


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "union_tag_not_found":
            what = f"kind is missing; use {', '.join(KINDS)}"
        case "union_tag_invalid":
            what = f"unknown kind {first.get('ctx', {}).get('tag')!r:.42}; use {', '.join(KINDS)}"
        case "missing":
            what = "is missing"
        case "string_pattern_mismatch" | "string_too_short":
            what = "is blank"
        case _:
            what = first["msg"].removeprefix("Value error, ").replace("\n", " ")
    return f"{key}: {what}".removeprefix(": ")
