"""The day's lessons and their outcomes, as the page, the terminal and MLflow show them."""

from dataclasses import asdict, dataclass, field
from typing import Any

from conf.storage.journal import CONVERSATION, FROM_CHAR, IMPLICIT, POLICIES, Entry, Preference
from flows.teaching.answers import CHAMPION, DAY
from models.lessons.outcome import LessonOutcome
from tasks.teaching.lessons import Lesson

LAST = 10  # how many of the latest picks the page counts


@dataclass
class Book:
    """The lessons, oldest first, and their outcomes, both by lesson name. `undone`: how many lessons were removed."""

    lessons: dict[str, Lesson] = field(default_factory=dict)
    outcomes: dict[str, LessonOutcome] = field(default_factory=dict)
    undone: int = 0

    def remove(self, name: str) -> None:
        """Remove a lesson and its outcome."""
        del self.lessons[name]
        self.outcomes.pop(name, None)
        self.undone += 1

    def about(self, conversation: str) -> list[str]:
        """Return the names of the lessons that belong to a conversation."""
        return [name for name, lesson in self.lessons.items() if lesson.key(CONVERSATION) == conversation]

    @property
    def has_learned(self) -> bool:
        """Whether the day copy has learned any of the lessons."""
        return any(outcome.learned for outcome in self.outcomes.values())

    def shown(self) -> list[dict[str, Any]]:
        """Return the lessons as the page lists them, latest first."""
        return [
            {"id": lesson.name, "at": lesson.entries[0].at, "live": lesson.live}
            | {"what": summary_of(lesson), **asdict(self.outcomes.get(lesson.name, LessonOutcome()))}
            for lesson in reversed(self.lessons.values())
        ]

    def guessed(self) -> dict[str, Any]:
        """Count the latest picks (`of`), those that the day copy guessed (`right`) and those expected by `chance`."""
        guesses = [
            (outcome.guessed, 1 / len(set(entry.responses)))
            for name, lesson in self.lessons.items()
            if (outcome := self.outcomes.get(name)) and outcome.guessed is not None
            if isinstance(entry := lesson.entries[0], Preference)
        ][-LAST:]
        right, chance = sum(guess for guess, _ in guesses), sum(chance for _, chance in guesses)
        return {"right": right, "of": len(guesses), "chance": round(chance, 1)}

    def day_kl(self) -> float:
        """Return the last KL(champion ‖ day copy) in nats per token of the anchors' answers, or 0.0 if unmeasured."""
        known = [self.outcomes[name].day_kl for name in self.lessons if name in self.outcomes]
        return next((found for found in reversed(known) if found is not None), 0.0)

    def blind(self) -> dict[str, float]:
        """Return how many of the `picks` chose the `day` copy's answer, and how many would do so by `chance`.

        Only picks among both models' answers count. If both wrote the chosen answer, the day copy's share of it counts.
        """
        tests = [blind_test(lesson.entries[0]) for lesson in self.lessons.values()]
        found = [test for test in tests if test is not None]
        won, chance = (round(sum(each), 2) for each in zip(*found, strict=True)) if found else (0.0, 0.0)
        return {"picks": len(found), "day": won, "chance": chance}

    def figures(self, name: str) -> dict[str, float | None]:
        """Return the metrics of a lesson and of the day so far, by name."""
        outcome, guessed, blind = self.outcomes[name], self.guessed(), self.blind()
        return {
            "change_nats": outcome.change_nats,
            "intended_nats": outcome.intended_nats,
            "halvings": float(outcome.halvings),
            "undone": float(self.undone),
            "kl": outcome.kl,
            "day_kl": outcome.day_kl,
            "seconds": outcome.seconds,
            "learned": float(outcome.learned),
            "guessed_share": guessed["right"] / guessed["of"] if guessed["of"] else None,
            "blind_share": blind["day"] / blind["picks"] if blind["picks"] else None,
            "blind_chance": blind["chance"] / blind["picks"] if blind["picks"] else None,
        }


def blind_test(entry: Entry) -> tuple[float, float] | None:
    """Return the share of the day copy in the picked answer, and its share in all answers; None if it was no test.

    A test is a pick among answers of both models, with their authors (POLICIES).
    """
    if not isinstance(entry, Preference) or (policies := entry.extra(POLICIES)) is None:
        return None
    authors = [author for each in policies for author in each]
    if not {DAY, CHAMPION} <= {*authors}:
        return None
    picked = policies[entry.chosen]
    return picked.count(DAY) / len(picked), authors.count(DAY) / len(authors)


def summary_of(lesson: Lesson) -> dict[str, str]:
    """Return a lesson's `kind`, its `question`, and the `text` that it teaches or judges."""
    entry: Any = lesson.entries[0]
    if entry.kind == "words":
        return {"kind": "words", "question": "", "text": entry.text}
    if entry.kind == "conversation":
        rated = "good_talk" if (entry.rewards[-1] or 0) > 0 else "bad_talk"
        kind, asked = lesson.key(IMPLICIT) or rated, entry.messages[-2].content
        return {"kind": kind, "question": asked, "text": entry.messages[-1].content}
    question = {"question": entry.messages[-1].content}
    match entry.kind:
        case "preference":
            return question | {"kind": "pick", "text": entry.responses[entry.chosen]}
        case "correction":
            return question | {"kind": "correct", "text": entry.correction}
    if implicit := lesson.key(IMPLICIT):
        return question | {"kind": implicit, "text": entry.response}
    if len(lesson.entries) > 1:
        return question | {"kind": "none", "text": ""}
    if (start := lesson.key(FROM_CHAR)) is not None:
        return question | {"kind": "wrong_from", "text": entry.response[start:]}
    return question | {"kind": "praise" if entry.value > 0 else "blame", "text": entry.response}
