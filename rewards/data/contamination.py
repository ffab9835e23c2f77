"""Detect whether a text asks an exam question in exactly or nearly the same words.

Near matches are found by the overlap of word n-grams, as in the cleaning of GPT-3's training data (Brown et al. 2020,
arXiv:2005.14165, appendix C). In addition, the numbers must be the same: many problems are made from templates, and the
same sentence with other numbers is a different problem, which may be trained on.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

NGRAM = 4  # words
MIN_NGRAMS = 6  # a question with fewer is matched only exactly
THRESHOLD = 0.6  # share of a question's n-grams; docs/journal.md reports what this finds

# These do not change the meaning, so they are removed or unified: drawings, LaTeX's spacing, kinds of fraction.
FIGURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
SPACING = re.compile(r"\\(?:[,;:! ]|left|right|displaystyle|text|mathrm|quad|qquad)(?![A-Za-z])")
SIZE = re.compile(r"\\[dtc](?=frac|binom)")
BARE_FRACTION = re.compile(r"(?<=\\frac)\s*(\d)\s*(\d)")
# Numbers, words and operators count; other punctuation, dollar signs and backslashes do not.
SIGN = r"[-+*/^=<>%!|×÷−±√≤≥°]"
WORD = re.compile(rf"\d+(?:[.,]\d+)*|[^\W\d_]+|{SIGN}")

PARAGRAPH = re.compile(r"\n\s*\n")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """The exam question that a text asks. `share`: the fraction of its n-grams that the text has (1 if exact)."""

    question: str
    kind: Literal["exact", "near"]
    share: float


class Contamination:
    """Finds an exam's questions in texts, with an n-gram index of the questions."""

    def __init__(self, questions: Iterable[str]) -> None:
        self.questions = sorted(set(questions))
        self._words = [words(question) for question in self.questions]
        self._ngrams = [set(_ngrams(question)) for question in self._words]
        self._numbers = [_numbers(question) for question in self._words]
        self._by_beginning: dict[Words, list[int]] = defaultdict(list)
        self._by_ngram: dict[Words, list[int]] = defaultdict(list)
        self._asks = dict.fromkeys(self.questions, True)  # also those without words, which `match` cannot find
        for index, question in enumerate(self._words):
            if question:
                self._by_beginning[question[:NGRAM]].append(index)
            if len(self._ngrams[index]) >= MIN_NGRAMS:
                for ngram in self._ngrams[index]:
                    self._by_ngram[ngram].append(index)

    def match(self, text: str) -> Match | None:
        """Return the exam question that the text or part of it asks: the longest exact match, else the nearest one."""
        text_words = words(text)
        return self._exact(text_words) or self._near(text_words)

    def match_any(self, texts: Sequence[str]) -> Match | None:
        """Return an exam question asked by a text, by one of its paragraphs or lines, or by all of the texts joined.

        Near matching needs the paragraphs and lines, because the text around a question adds words and numbers.
        """
        pieces = [piece for text in texts for piece in (text, *PARAGRAPH.split(text), *text.splitlines())]
        return next(filter(None, map(self.match, dict.fromkeys([*pieces, "\n".join(texts)]))), None)

    def has(self, question: str) -> bool:
        """Return whether a question matches an exam question. Results are cached: later rounds repeat problems."""
        if question not in self._asks:
            self._asks[question] = self.match_any([question]) is not None
        return self._asks[question]

    def _exact(self, text: Words) -> Match | None:
        """Return the longest exam question whose words occur in the text consecutively."""
        hits = {
            index
            for start in range(len(text))
            for length in range(1, NGRAM + 1)
            for index in self._by_beginning.get(text[start : start + length], ())
            if self._words[index] == text[start : start + len(self._words[index])]
            and _is_complete(text, start, start + len(self._words[index]))
        }
        if not hits:
            return None
        longest = max(sorted(hits), key=lambda index: len(self._words[index]))
        return Match(self.questions[longest], "exact", 1.0)

    def _near(self, text: Words) -> Match | None:
        shared = Counter(index for ngram in set(_ngrams(text)) for index in self._by_ngram.get(ngram, ()))
        shares = {
            index: share
            for index, count in shared.items()
            if (share := count / len(self._ngrams[index])) >= THRESHOLD and self._same_numbers(index, text)
        }
        if not shares:
            return None
        nearest = max(sorted(shares), key=lambda index: shares[index])
        return Match(self.questions[nearest], "near", shares[nearest])

    def _same_numbers(self, index: int, text: Words) -> bool:
        """Return whether the text, or the part of it that asks the question, has the question's numbers and no others.

        That part runs from the first shared n-gram to the last, plus as many words before and after as the question has
        there. A question without numbers (they may be in its drawing) matches only a text without numbers.
        """
        if not (numbers := self._numbers[index]):
            return not _numbers(text)
        ngrams, asked = _ngrams(text), _ngrams(self._words[index])
        shared = [start for start, ngram in enumerate(ngrams) if ngram in self._ngrams[index]]
        before, after = asked.index(ngrams[shared[0]]), asked[::-1].index(ngrams[shared[-1]])
        part = text[max(0, shared[0] - before) : shared[-1] + NGRAM + after]
        return numbers in (_numbers(text), _numbers(part))


@lru_cache(maxsize=4)
def exam_index(questions: tuple[str, ...]) -> Contamination:
    """Return the index of an exam's questions. It is built once per process."""
    return Contamination(questions)


def words(text: str) -> Words:
    """Return the words, numbers and operators of a text, in lower case and without layout."""
    plain = unicodedata.normalize("NFKC", FIGURE.sub(" ", text))
    plain = BARE_FRACTION.sub(r" \1 \2 ", SIZE.sub(r"\\", SPACING.sub(" ", plain))).replace("\\%", "%")
    return tuple(word.casefold().replace(",", "") for word in WORD.findall(plain))


def _is_complete(text: Words, start: int, end: int) -> bool:
    """Return whether text[start:end] is not part of a longer calculation, as `2 + 3` is in `2 + 3 * 4`."""
    neighbours = (*text[start - 1 : start], *text[end : end + 1])
    return not any(re.fullmatch(SIGN, word) for word in neighbours)


def _ngrams(text: Words) -> list[Words]:
    return [text[start : start + NGRAM] for start in range(len(text) - NGRAM + 1)]


def _numbers(text: Words) -> Counter[str]:
    return Counter(word for word in text if word[0].isdecimal())
