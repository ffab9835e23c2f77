"""Reads the owner's lines of the day as examples: token ids of those worth learning, and counts of the others."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import TemplateError

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import Example, Pick, RatedAnswer
from rewards.data.contamination import exam_index

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WEAK = 0.25  # feedback below it says too little for a method that knows only good and bad


class ExampleReader:
    """Reads the tables of a frozen day, one kind a method.

    `counts`: the number of `lines`, and of those `used`. The others match an exam question (`exam`), exceed
    `max_tokens` (`too_long`), are refused by the student's template (`refused`: two turns of the same speaker, say),
    are held out to judge (`held_out`), or have nothing to learn: feedback near 0 (`neutral`), text of a single token
    (`too_short`), a pick without another answer (`no_choice`).
    `lessons`: the name of the lesson that each example returned so far belongs to.
    """

    def __init__(
        self, checkpoint: Path, student: StudentConfig, exam_questions: Sequence[str], max_tokens: int
    ) -> None:
        self.checkpoint, self.student = checkpoint, student
        self.lessons: list[str] = []
        self.exam, self.max_tokens = exam_index(tuple(exam_questions)), max_tokens
        self.counts: Counter[str] = Counter(lines=0, used=0, exam=0, too_long=0)

    def corrections(self, table: pd.DataFrame) -> list[Example]:
        """Return the prompts with the answers that the owner wrote."""
        examples: list[Example] = []
        for row, prompt in self.prompts(table):
            answer = self._answer(row.correction)
            if self.fits(prompt, answer):
                examples.append((prompt, answer))
                self._use(row)
        return examples

    def words(self, table: pd.DataFrame, piece: int) -> list[Example]:
        """Return the texts in pieces of at most `piece` tokens; each token but a text's first is predicted once.

        A piece begins with the last token of the one before. There is no end token: a text may be an extract.
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
        """Return the prompts with rated answers, desirable if the value is above 0.

        KTO ignores its size, so that values within ±0.25 count as neutral.
        """
        examples: list[RatedAnswer] = []
        for row, prompt in self.prompts(table):
            answer = self._answer(row.response)
            if abs(row.value) < WEAK:
                self.counts["neutral"] += 1
            elif self.fits(prompt, answer):
                examples.append(RatedAnswer(prompt, answer, row.value > 0))
                self._use(row)
        return examples

    def picks(self, table: pd.DataFrame) -> list[Pick]:
        """Return the picks, the picked answer first, each different answer once, without those that are too long."""
        examples: list[Pick] = []
        for row, prompt in self.prompts(table):
            answers = [self._answer(text) for text in json.loads(row.responses)]
            picked = answers[row.chosen]
            others = dict.fromkeys(tuple(answer) for answer in answers if answer != picked)
            fitting = [other for other in others if len(prompt) + len(other) <= self.max_tokens]
            if not fitting:
                self.counts["no_choice"] += 1
            elif self.fits(prompt, picked):
                examples.append(Pick(tuple(prompt), (tuple(picked), *fitting), 0))
                self._use(row)
        return examples

    def prompts(self, table: pd.DataFrame) -> Any:
        """Yield the rows that may be learned, each with its prompt's tokens."""
        for row in table.itertuples():
            self.counts["lines"] += 1
            messages = json.loads(str(row.messages))
            if self.exam.match_any([*(message["content"] for message in messages), *_answers(row)]):
                self.counts["exam"] += 1
                continue
            if row.held_out:
                self.counts["held_out"] += 1
                continue
            try:
                prompt = prompt_tokens(self._tokenizer, messages, self.student)
            except TemplateError:
                self.counts["refused"] += 1
                continue
            yield row, prompt

    def _answer(self, text: str) -> list[int]:
        return answer_tokens(self._tokenizer, text)

    def fits(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> bool:
        """Return whether an example has room; if not, count it."""
        fits = len(prompt) + len(answer) <= self.max_tokens
        self.counts["too_long"] += not fits
        return fits

    def _use(self, row: Any, examples: int = 1) -> None:
        self.counts["used"] += 1
        self.lessons += [row.lesson] * examples

    @cached_property
    def _tokenizer(self) -> "PreTrainedTokenizerBase":
        """The student's tokenizer, loaded when the first line needs it."""
        return load_tokenizer(self.checkpoint, self.student.trust_remote_code)


def _answers(row: Any) -> list[str]:
    """Return all answers in a row, learned or not: any of them may contain an exam question."""
    shown = json.loads(row.responses) if hasattr(row, "responses") else [row.response]
    return [*shown, *([row.correction] if hasattr(row, "correction") else [])]
