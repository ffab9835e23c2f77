"""The day's lines as lessons: token ids of those worth learning, and a count of what became of the others."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from conf.schema import StudentConfig
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.lessons.preference_data import Example, Judged, Pick, is_held_out
from rewards.contamination import exam_index


class LessonLines:
    """Reads the tables of a frozen day, each with one method.

    `counts`: `lines` there were, of which `used` are learnt. The others ask a question of the exam (`exam`), do not
    fit into `max_tokens` (`too_long`), are a conversation that the student's template refuses (`refused`: two turns of
    the same speaker, say), judge the reward model (`held_out`), or say nothing: feedback of 0 (`neutral`), text of a
    single token (`too_short`), a pick of which nothing else remains (`no_choice`).
    `unseen_share`: of the conversations, those that judge the reward model, and the student beside it.
    """

    def __init__(
        self,
        checkpoint: Path,
        student: StudentConfig,
        exam_questions: Sequence[str],
        max_tokens: int,
        unseen_share: float = 0.0,
    ) -> None:
        self.checkpoint, self.student, self.unseen_share = checkpoint, student, unseen_share
        self.exam, self.max_tokens = exam_index(tuple(exam_questions)), max_tokens
        self.counts: Counter[str] = Counter(lines=0, used=0, exam=0, too_long=0)

    def corrections(self, table: pd.DataFrame) -> list[Example]:
        """Prompts with the answers that the owner wrote."""
        found: list[Example] = []
        for row, prompt in self._prompts(table):
            answer = self._answer(row.correction)
            if self._fits(prompt, answer):
                found.append((prompt, answer))
        return self._used(found)

    def words(self, table: pd.DataFrame, piece: int) -> list[Example]:
        """Texts in pieces of at most `piece` tokens. Every token is predicted once but a text's first.

        A piece begins with the token that the one before it ended with. No end token is added: a text may be an
        extract.
        """
        found: list[Example] = []
        for text in table.text:
            self.counts["lines"] += 1
            tokens = self._tokenizer.encode(text, add_special_tokens=False)
            if self.exam.match_any([text]):
                self.counts["exam"] += 1
            elif len(tokens) < 2:
                self.counts["too_short"] += 1
            else:
                self.counts["used"] += 1
                starts = range(0, len(tokens) - 1, max(1, min(piece, self.max_tokens) - 1))
                found += [(tokens[at : at + 1], tokens[at + 1 : at + starts.step + 1]) for at in starts]
        return found

    def feedback(self, table: pd.DataFrame) -> list[Judged]:
        """Prompts with answers that were praised (a value above 0) or scolded; how much is not KTO's to know."""
        found: list[Judged] = []
        for row, prompt in self._prompts(table):
            answer = self._answer(row.response)
            if not row.value:
                self.counts["neutral"] += 1
            elif self._fits(prompt, answer):
                found.append(Judged(prompt, answer, row.value > 0))
        return self._used(found)

    def picks(self, table: pd.DataFrame) -> list[Pick]:
        """Picks, the one picked first, each other answer once, unless it is too long or the same as the one picked."""
        found: list[Pick] = []
        for row, prompt in self._prompts(table):
            answers = [self._answer(text) for text in json.loads(row.responses)]
            picked = answers[row.chosen]
            others = dict.fromkeys(tuple(answer) for answer in answers if answer != picked)
            fitting = [other for other in others if len(prompt) + len(other) <= self.max_tokens]
            if not fitting:
                self.counts["no_choice"] += 1
            elif self._fits(prompt, picked):
                found.append(Pick(tuple(prompt), (tuple(picked), *fitting), 0))
        return self._used(found)

    def _prompts(self, table: pd.DataFrame) -> Any:
        """The rows that may be learnt, each with its prompt's tokens."""
        for row in table.itertuples():
            self.counts["lines"] += 1
            messages = json.loads(str(row.messages))
            if self.exam.match_any([*(message["content"] for message in messages), *_answers(row)]):
                self.counts["exam"] += 1
                continue
            if is_held_out(messages, self.unseen_share):
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

    def _fits(self, prompt: list[int], answer: list[int]) -> bool:
        fits = len(prompt) + len(answer) <= self.max_tokens
        self.counts["too_long"] += not fits
        return fits

    def _used(self, found: list[Any]) -> list[Any]:
        self.counts["used"] += len(found)
        return found

    @cached_property
    def _tokenizer(self) -> PreTrainedTokenizerBase:
        """Loaded where there is a line to read."""
        return load_tokenizer(self.checkpoint, self.student.trust_remote_code)


def _answers(row: Any) -> list[str]:
    """The answers in a row, whichever of them is learnt: an exam's question may be asked in one of them too."""
    shown = json.loads(row.responses) if hasattr(row, "responses") else [row.response]
    return [*shown, *([row.correction] if hasattr(row, "correction") else [])]
