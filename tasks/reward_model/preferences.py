"""The day's picks and corrections as the reward model takes them: answers that differ, in tokens, by age."""

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from conf.schema import StudentConfig
from conf.sections.lessons import RewardModelConfig
from models.hf.loading import answer_tokens, prompt_tokens
from models.lessons.preference_data import Pick, age_weight, is_held_out, opening
from rewards.contamination import exam_index
from tasks.tables import CORRECTIONS, GENERATED, PREFERENCES, read_table

LEFT_OUT = ("no_choice", "too_long", "refused", "exam", "known", "correction")  # why a pick is
AT_ONCE = 16  # longest answers: all answers of a pick go through the model together


@dataclass(frozen=True)
class Choice:
    """An owner's pick as text; a correction (`corrected`) is one of two. `night`: when it was first read, None for
    tonight. `generated`: no owner's, and the same every night.
    """

    messages: list[dict[str, str]]
    responses: list[str]
    chosen: int
    night: str | None
    corrected: bool = False
    generated: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """As the table of the held-out picks has it."""
        responses = json.dumps(self.responses)
        return {"messages": json.dumps(self.messages), "responses": responses, "chosen": self.chosen}


@dataclass
class DayPicks:
    """Picks for the fit and held-out ones, these as text too, and how many were left out, by reason."""

    fitted: list[Pick] = field(default_factory=list)
    held_out: list[Pick] = field(default_factory=list)
    held_out_choices: list[Choice] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(LEFT_OUT, 0)))

    def __len__(self) -> int:
        return len(self.fitted) + len(self.held_out)


def choices(day: Path) -> Iterator[Choice]:
    """What a freeze's tables hold: picks, each answer once, then corrections as the corrected answer over the other."""
    picks: Any = read_table(day / "preferences.parquet", PREFERENCES).to_dict("records")
    for row in picks:
        yield _choice(row, json.loads(row["responses"]), row["chosen"])
    corrections: Any = read_table(day / "corrections.parquet", CORRECTIONS).to_dict("records")
    for row in corrections:
        yield _choice(row, [row["response"], row["correction"]], 1, corrected=True)


def openings_held_out(day: Path, share: float) -> tuple[str, ...]:
    """How the conversations begin in which the picks stand that judge the reward model; none where the share is 0."""
    if not share:
        return ()
    found = (choice.messages for choice in choices(day))
    return tuple(sorted({opening(messages) for messages in found if is_held_out(messages, share)}))


def day_picks(
    found: Iterable[Choice],
    date: str,
    tokenizer: PreTrainedTokenizerBase,
    student: StudentConfig,
    config: RewardModelConfig,
    exam_questions: tuple[str, ...] = (),
    looser: Sequence[tuple[str, float]] = (),
) -> DayPicks:
    """Sorts the picks, as they stand on a date, into those for the fit and those that judge it.

    Left out are those without two different answers (`no_choice`), that ask a question of the exam, word for word or
    nearly (`exam`), whose conversation the student's template refuses (`refused`), with an answer longer than
    `config.max_tokens`, or with more of them than a step has memory for (`too_long`); and those that would judge, but
    of whose conversation the champion may have had a lesson (`known`): on one of the nights that held out less
    (`looser`, each with its share). A held-out `correction` judges nothing: that an owner wrote the one answer and the
    student the other can be told by their style, and says nothing of how well the student's own are told apart.
    """
    picks, exam, found = DayPicks(), exam_index(exam_questions), list(found)
    known = {opening(choice.messages) for choice in found if _may_be_known(choice, looser)}
    for choice in found:
        if len(choice.responses) < 2:
            picks.left_out["no_choice"] += 1
            continue
        if exam.match_any([*(message["content"] for message in choice.messages), *choice.responses]):
            picks.left_out["exam"] += 1
            continue
        try:
            prompt = tuple(prompt_tokens(tokenizer, choice.messages, student))
        except TemplateError:
            picks.left_out["refused"] += 1
            continue
        answers = tuple(tuple(answer_tokens(tokenizer, response)) for response in choice.responses)
        longest, whole = max(map(len, answers)), sum(map(len, answers))
        if len(prompt) + longest > config.max_tokens or len(prompt) + whole > AT_ONCE * config.max_tokens:
            picks.left_out["too_long"] += 1
            continue
        pick = Pick(prompt, answers, choice.chosen, age_weight(_age(choice.night, date), config.half_life_nights))
        if not is_held_out(choice.messages, config.held_out_share):
            picks.fitted.append(pick)
        elif choice.corrected:
            picks.left_out["correction"] += 1
        elif opening(choice.messages) in known:
            picks.left_out["known"] += 1
        else:
            picks.held_out.append(pick)
            picks.held_out_choices.append(choice)
    return picks


def _may_be_known(choice: Choice, looser: Sequence[tuple[str, float]]) -> bool:
    """Whether one of these nights had a choice and did not keep it from its lessons. A generated one every night has,
    whatever night its row is of: the seed draws it.
    """
    return any(
        (choice.generated or (choice.night is not None and choice.night <= night))
        and not is_held_out(choice.messages, share)
        for night, share in looser
    )


def _choice(row: Mapping[str, Any], shown: list[str], chosen: int, corrected: bool = False) -> Choice:
    different = list(dict.fromkeys(shown))
    return Choice(
        json.loads(row["messages"]),
        different,
        different.index(shown[chosen]),
        row.get("night"),
        corrected,
        generated=row.get("source") == GENERATED,
    )


def _age(night: str | None, date: str) -> int:
    """Nights since a pick was first read."""
    if night is None:
        return 0
    return (datetime.date.fromisoformat(date) - datetime.date.fromisoformat(night)).days
