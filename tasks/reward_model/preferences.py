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
from tasks.tables import table_rows, unfinished

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

HALF_LIFE = 14.0  # nights after which a pick's weight has halved
LONGEST = 1024  # maximum tokens of a prompt plus an answer
MOST = 200  # maximum picks to fit: month-old picks weigh a quarter
AT_ONCE = 16  # limit on a pick's tokens, as a multiple of LONGEST: all its answers go through the model together


@dataclass(frozen=True)
class Choice:
    """A pick as text. A correction (`corrected`) counts as picking the owner's answer instead of the student's.

    `day`: the date of the pick's journal line. `lesson`: the pick's name in the journal. `held_out`: whether the pick's
    conversation is held out for evaluation. `generated`: whether the pick is from the generated (synthetic) day.
    `unfinished`: the responses that were stopped or cut off.
    """

    messages: list[dict[str, str]]
    responses: list[str]
    chosen: int
    day: str
    lesson: str = ""
    held_out: bool = False
    corrected: bool = False
    generated: bool = False
    unfinished: tuple[str, ...] = ()

    @property
    def row(self) -> dict[str, Any]:
        """The choice as a row of the table of held-out picks."""
        shown = {"messages": json.dumps(self.messages), "responses": json.dumps(self.responses)}
        cut = json.dumps(self.unfinished) if self.unfinished else None
        return shown | {"chosen": self.chosen, "generated": self.generated, "unfinished": cut}


@dataclass
class DayPicks:
    """A day's picks. `lessons`: the journal's names for the `fitted` picks. `left_out`: counts of others by reason."""

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
    """Yield a frozen day's picks, then its corrections as picks of the owner's answer. Equal answers are merged."""
    for row in table_rows(day / "preferences.parquet", PREFERENCES):
        yield _choice(row, json.loads(row["responses"]), row["chosen"])
    for row in table_rows(day / "corrections.parquet", CORRECTIONS):
        yield _choice(row, [row["response"], row["correction"]], 1, corrected=True)


def openings_held_out(day: Path) -> tuple[str, ...]:
    """Return the openings (see `opening`) of the conversations whose picks are held out."""
    return tuple(sorted({opening(choice.messages) for choice in choices(day) if choice.held_out}))


def day_picks(
    choices: Iterable[Choice],
    date: str,
    tokenizer: "PreTrainedTokenizerBase",
    student: StudentConfig,
    exam_questions: tuple[str, ...] = (),
) -> DayPicks:
    """Split the picks into those to fit and those that evaluate the fit. A pick's weight depends on its age on `date`.

    Picks are left out and counted for these reasons. `exam`: the pick contains an exam question, exactly or nearly.
    `refused`: the student's chat template refuses the conversation. `too_long`: the prompt plus an answer exceeds 1,024
    tokens, or a step has no memory for all answers. `correction`: the pick is a held-out correction, which cannot show
    how well the fit ranks the student's own answers, because style alone tells the owner's answer from the student's.
    `older`: the pick is not among the 200 newest picks to fit.
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
        answers = tuple(
            tuple(answer_tokens(tokenizer, response, response not in choice.unfinished))
            for response in choice.responses
        )
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
        unfinished=tuple(unfinished(row.get("unfinished"))),
    )
