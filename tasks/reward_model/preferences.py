"""The day's picks and corrections as examples for the reward model: tokenized, weighted by age, split by prompt."""

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, prompt_tokens
from models.lessons.preference_data import Pick, age_weight, opening
from rewards.data.contamination import exam_index
from tasks.journal.tables import CORRECTIONS, GENERATED, PREFERENCES
from tasks.tables import table_rows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

HALF_LIFE = 14.0  # nights after which a pick's weight has halved
LONGEST = 1024  # maximum tokens of a prompt plus an answer
MOST = 200  # maximum picks to fit: 200 take six minutes on two slow cores, and month-old picks weigh a quarter
AT_ONCE = 16  # maximum-length answers per pick: all answers of a pick go through the model together


@dataclass(frozen=True)
class Choice:
    """A pick as text. A correction (`corrected`) counts as a choice between two answers.

    `day`: the date of its journal line. `lesson`: its name in the journal. `held_out`: whether its conversation is held
    out for evaluation. `generated`: whether it is from the generated day.
    """

    messages: list[dict[str, str]]
    responses: list[str]
    chosen: int
    day: str
    lesson: str = ""
    held_out: bool = False
    corrected: bool = False
    generated: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """The choice as a row of the table of held-out picks."""
        shown = {"messages": json.dumps(self.messages), "responses": json.dumps(self.responses)}
        return shown | {"chosen": self.chosen, "generated": self.generated}


@dataclass
class DayPicks:
    """Picks to fit, their names in the journal (`lessons`), held-out picks, and how many were left out, by reason."""

    fitted: list[Pick] = field(default_factory=list)
    lessons: list[str] = field(default_factory=list)
    held_out: list[Pick] = field(default_factory=list)
    held_out_choices: list[Choice] = field(default_factory=list)
    left_out: Counter[str] = field(
        default_factory=lambda: Counter(too_long=0, refused=0, exam=0, correction=0, older=0)
    )

    def __len__(self) -> int:
        return len(self.fitted) + len(self.held_out)


def choices(day: Path) -> Iterator[Choice]:
    """Yield a frozen day's picks, then its corrections as picks of the owner's answer. Identical answers are merged."""
    for row in table_rows(day / "preferences.parquet", PREFERENCES):
        yield _choice(row, json.loads(row["responses"]), row["chosen"])
    for row in table_rows(day / "corrections.parquet", CORRECTIONS):
        yield _choice(row, [row["response"], row["correction"]], 1, corrected=True)


def openings_held_out(day: Path) -> tuple[str, ...]:
    """Return the openings of the conversations whose picks are held out."""
    return tuple(sorted({opening(choice.messages) for choice in choices(day) if choice.held_out}))


def day_picks(
    choices: Iterable[Choice],
    date: str,
    tokenizer: "PreTrainedTokenizerBase",
    student: StudentConfig,
    exam_questions: tuple[str, ...] = (),
) -> DayPicks:
    """Split the picks into those to fit and those that evaluate the fit, weighted by their age on `date`.

    Leaves out picks that ask an exam question, even approximately (`exam`), picks whose conversation the student's
    template refuses (`refused`), and picks with more than 1,024 tokens in prompt plus answer, or with more answers than
    a step has memory for (`too_long`). Held-out corrections are left out too (`correction`): style alone distinguishes
    the owner's answer from the student's, so they do not show how well the fit ranks the student's own answers.
    Only the 200 newest picks are fitted; the others are left out as `older`.
    """
    picks, exam = DayPicks(), exam_index(exam_questions)
    for choice in choices:
        if exam.match_any([*(message["content"] for message in choice.messages), *choice.responses]):
            picks.left_out["exam"] += 1
            continue
        try:
            prompt = tuple(prompt_tokens(tokenizer, choice.messages, student))
        except TemplateError:
            picks.left_out["refused"] += 1
            continue
        answers = tuple(tuple(answer_tokens(tokenizer, response)) for response in choice.responses)
        longest, total = max(map(len, answers)), sum(map(len, answers))
        if len(prompt) + longest > LONGEST or len(prompt) + total > AT_ONCE * LONGEST:
            picks.left_out["too_long"] += 1
            continue
        age = datetime.date.fromisoformat(date) - datetime.date.fromisoformat(choice.day)
        pick = Pick(prompt, answers, choice.chosen, age_weight(age.days, HALF_LIFE))
        if not choice.held_out:
            picks.fitted.append(pick)
            picks.lessons.append(choice.lesson)
        elif choice.corrected:
            picks.left_out["correction"] += 1
        else:
            picks.held_out.append(pick)
            picks.held_out_choices.append(choice)
    newest = sorted(range(len(picks.fitted)), key=lambda at: (picks.fitted[at].weight, at))[-MOST:]
    picks.left_out["older"] = len(picks.fitted) - len(newest)
    picks.lessons = [picks.lessons[at] for at in sorted(newest)]
    picks.fitted = [picks.fitted[at] for at in sorted(newest)]
    return picks


def _choice(row: Mapping[str, Any], shown: list[str], chosen: int, corrected: bool = False) -> Choice:
    different = list(dict.fromkeys(shown))
    return Choice(
        json.loads(row["messages"]),
        different,
        different.index(shown[chosen]),
        row["day"],
        row["lesson"],
        row["held_out"],
        corrected,
        generated=row.get("source") == GENERATED,
    )
