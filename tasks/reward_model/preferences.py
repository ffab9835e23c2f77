"""The day's picks and corrections as examples for the reward model: tokenized, weighted by age, split by prompt."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from models.lessons.preference_data import Pick, age_weight, opening
from tasks.journal.tables import CORRECTIONS, GENERATED, PREFERENCES
from tasks.tables import Row, table_rows
from tasks.training.examples import ExampleReader

TABLES = {"preferences": PREFERENCES, "corrections": CORRECTIONS}  # of a frozen day
HALF_LIFE = 14.0  # nights after which a pick's weight has halved
LONGEST = 1024  # maximum tokens of a prompt plus an answer
MOST = 200  # maximum picks to fit: month-old picks weigh a quarter
AT_ONCE = 16  # limit on a pick's tokens, as a multiple of LONGEST: all its answers go through the model together
LEFT_OUT = ("too_long", "refused", "exam", "correction", "older")


@dataclass
class DayPicks:
    """A day's picks. `lessons`: the journal's names for the `fitted` picks. `left_out`: counts of others by reason.

    `held_out_rows`: the `held_out` picks as rows of the table of held-out picks.
    """

    fitted: list[Pick] = field(default_factory=list)
    lessons: list[str] = field(default_factory=list)
    held_out: list[Pick] = field(default_factory=list)
    held_out_rows: list[Row] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.fitted) + len(self.held_out)


def openings_held_out(day: Path) -> tuple[str, ...]:
    """Return the openings (see `opening`) of the conversations whose picks are held out."""
    rows = [row for name, schema in TABLES.items() for row in table_rows(day / f"{name}.parquet", schema)]
    return tuple(sorted({opening(json.loads(row["messages"])) for row in rows if row["held_out"]}))


def day_picks(tables: Mapping[str, pd.DataFrame], date: str, reader: ExampleReader) -> DayPicks:
    """Split the picks into those to fit and those that evaluate the fit. A pick's weight depends on its age on `date`.

    `tables`: a frozen day's `preferences` and `corrections`. A correction counts as picking the owner's answer instead
    of the student's. Equal answers are merged. `reader`: gives the prompts, and has the limit on their length.

    Picks are left out and counted for these reasons. `exam`: the pick contains an exam question, exactly or nearly.
    `refused`: the student's chat template refuses the conversation. `too_long`: the prompt plus an answer exceeds the
    reader's limit, or a step has no memory for all answers. `correction`: the pick is a held-out correction, which
    cannot show how well the fit ranks the student's own answers, because style alone tells the owner's answer from the
    student's. `older`: the pick is not among the 200 newest picks to fit.
    """
    picks = DayPicks()
    prompts = ((name, *found) for name, table in tables.items() for found in reader.prompts(table, held_out=True))
    for name, row, prompt in prompts:
        corrected = name == "corrections"
        shown = [row.response, row.correction] if corrected else json.loads(row.responses)
        different = list(dict.fromkeys(shown))
        chosen = different.index(shown[1 if corrected else row.chosen])
        answers = tuple(tuple(reader.answer(row, text)) for text in different)
        if len(prompt) + sum(map(len, answers)) > AT_ONCE * reader.max_tokens:
            reader.counts["too_long"] += 1
            continue
        if not reader.fits(prompt, max(answers, key=len)):
            continue
        age = datetime.date.fromisoformat(date) - datetime.date.fromisoformat(row.day)
        pick = Pick(tuple(prompt), answers, chosen, age_weight(age.days, HALF_LIFE))
        if not row.held_out:
            picks.fitted.append(pick)
            picks.lessons.append(row.lesson)
        elif corrected:
            reader.counts["correction"] += 1
        else:
            kept = {"messages": row.messages, "responses": json.dumps(different), "chosen": chosen}
            kept |= {"generated": row.source == GENERATED, "unfinished": row.unfinished}
            picks.held_out.append(pick)
            picks.held_out_rows.append(kept)
    newest = sorted(range(len(picks.fitted)), key=lambda at: (picks.fitted[at].weight, at))[-MOST:]
    reader.counts["older"] = len(picks.fitted) - len(newest)
    picks.left_out = {reason: reader.counts[reason] for reason in LEFT_OUT}
    picks.lessons = [picks.lessons[at] for at in sorted(newest)]
    picks.fitted = [picks.fitted[at] for at in sorted(newest)]
    return picks
