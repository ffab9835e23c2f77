"""Turns the owner's feedback into training examples (token ids), and counts the lines left out."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import TemplateError

from conf.schema import StudentConfig
from models.hf.loading import Tokenizer, answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import Example, Pick, RatedAnswer
from rewards.data.contamination import exam_index
from tasks.tables import unfinished


class ExampleReader:
    """Reads the tables of a frozen day, with one method per kind of table.

    `counts`: the number of `lines` read, of lines `used`, and of the others by reason: they match an exam question
    (`exam`), exceed `max_tokens` (`too_long`), are rejected by the student's chat template (`refused`, e.g. two turns
    in a row by one speaker), are held out for evaluation (`held_out`), or give nothing to train on: a rating of 0
    (`neutral`), a text of fewer than two tokens (`too_short`), or a pick without another answer that fits
    (`no_choice`). `lessons`: for each example returned so far, the name of its lesson in the journal.
    """

    def __init__(
        self, checkpoint: Path, student: StudentConfig, exam_questions: Sequence[str], max_tokens: int
    ) -> None:
        self.checkpoint, self.student = checkpoint, student
        self.lessons: list[str] = []
        self.exam, self.max_tokens = exam_index(tuple(exam_questions)), max_tokens
        self.counts: Counter[str] = Counter(lines=0, used=0, exam=0, too_long=0)

    def corrections(self, table: pd.DataFrame) -> list[Pick]:
        """Return corrections as picks among two: the correction, and as much of the answer as fits."""
        examples: list[Pick] = []
        for row, prompt in self.prompts(table):
            correction, answer = self.answer(row, row.correction), self.answer(row, row.response)
            if self.fits(prompt, correction):
                room = self.max_tokens - len(prompt)
                examples.append(Pick(tuple(prompt), (tuple(correction), tuple(answer[:room])), 0))
                self._use(row)
        return examples

    def words(self, table: pd.DataFrame, piece: int) -> list[Example]:
        """Split texts into pieces of at most `piece` tokens. Every token except a text's first is trained on once.

        Each piece but the first starts with the last token of the piece before it, as context. No end token is added,
        because a text may be an extract.
        """
        examples: list[Example] = []
        for row in table.itertuples():
            self.counts["lines"] += 1
            tokens = self._tokenizer.encode(str(row.text), add_special_tokens=False)
            if self.exam.match_any([str(row.text)]):
                self.counts["exam"] += 1
            elif len(tokens) < 2:
                self.counts["too_short"] += 1
            else:
                starts = range(0, len(tokens) - 1, max(1, min(piece, self.max_tokens) - 1))
                examples += [(tokens[at : at + 1], tokens[at + 1 : at + starts.step + 1]) for at in starts]
                self._use(row, len(starts))
        return examples

    def feedback(self, table: pd.DataFrame) -> list[RatedAnswer]:
        """Return rated answers with their prompts. Ratings of 0 are left out."""
        examples: list[RatedAnswer] = []
        for row, prompt in self.prompts(table):
            answer = self.answer(row, row.response)
            if not row.value:
                self.counts["neutral"] += 1
            elif self.fits(prompt, answer):
                examples.append(RatedAnswer(prompt, answer, float(row.value)))
                self._use(row)
        return examples

    def picks(self, table: pd.DataFrame) -> list[Pick]:
        """Return picks, each with the picked answer first, then each distinct other answer that is not too long."""
        examples: list[Pick] = []
        for row, prompt in self.prompts(table):
            answers = [self.answer(row, text) for text in json.loads(row.responses)]
            picked = answers[row.chosen]
            others = dict.fromkeys(tuple(answer) for answer in answers if answer != picked)
            fitting = [other for other in others if len(prompt) + len(other) <= self.max_tokens]
            if not fitting:
                self.counts["no_choice"] += 1
            elif self.fits(prompt, picked):
                examples.append(Pick(tuple(prompt), (tuple(picked), *fitting), 0))
                self._use(row)
        return examples

    def prompts(self, table: pd.DataFrame, *, held_out: bool = False) -> Any:
        """Yield each row to train on (with `held_out`, also those held out), and its prompt's token ids."""
        for row in table.itertuples():
            self.counts["lines"] += 1
            messages = json.loads(str(row.messages))
            if self.exam.match_any([*(message["content"] for message in messages), *_answers(row)]):
                self.counts["exam"] += 1
                continue
            if row.held_out and not held_out:
                self.counts["held_out"] += 1
                continue
            try:
                prompt = prompt_tokens(self._tokenizer, messages, self.student)
            except TemplateError:
                self.counts["refused"] += 1
                continue
            yield row, prompt

    def answer(self, row: Any, text: str) -> list[int]:
        """Return the token ids of an answer in a row, with an end token unless the answer was stopped or cut off."""
        return answer_tokens(self._tokenizer, text, finished=text not in unfinished(getattr(row, "unfinished", None)))

    def fits(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> bool:
        """Return whether an example fits into `max_tokens`. If not, count it as too long."""
        fits = len(prompt) + len(answer) <= self.max_tokens
        self.counts["too_long"] += not fits
        return fits

    def _use(self, row: Any, examples: int = 1) -> None:
        self.counts["used"] += 1
        self.lessons += [row.lesson] * examples

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The student's tokenizer, loaded when the first line needs it."""
        return load_tokenizer(self.checkpoint, self.student.trust_remote_code)


def _answers(row: Any) -> list[str]:
    """Return all answers in a row of a table, trained on or not, because any of them may contain an exam question."""
    shown = json.loads(row.responses) if hasattr(row, "responses") else [row.response]
    return [*shown, *([row.correction] if hasattr(row, "correction") else [])]
