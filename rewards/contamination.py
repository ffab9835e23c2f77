"""Whether a text asks a problem of the exam: word for word, or nearly.

Nearly is the overlap of word n-grams by which GPT-3's training data was cleaned (Brown et al. 2020, arXiv:2005.14165,
appendix C), with one rule more: where the text asks, all numbers must be the same. Problems are made from templates,
and the same sentence about other numbers is another problem, which is well worth learning.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

NGRAM = 4  # words
LEAST_NGRAMS = 6  # a question with fewer is only found word for word
THRESHOLD = 0.6  # share of a question's n-grams; see docs/distillation.md for what it finds

# What is written in several ways and means the same: a figure's program, LaTeX's spacing, sizes and kinds of fraction.
FIGURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
SPACING = re.compile(r"\\(?:[,;:! ]|left|right|displaystyle|text|mathrm|quad|qquad)(?![A-Za-z])")
SIZE = re.compile(r"\\[dtc](?=frac|binom)")
BARE_FRACTION = re.compile(r"(?<=\\frac)\s*(\d)\s*(\d)")
# A number, a word, or a sign that calculates; other punctuation, dollar signs and backslashes do not count.
SIGN = r"[-+*/^=<>%!|×÷−±√≤≥°]"
WORD = re.compile(rf"\d+(?:[.,]\d+)*|[^\W\d_]+|{SIGN}")

PARAGRAPH = re.compile(r"\n\s*\n")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Match:
    """The exam's question that a text asks; `share` of its n-grams are in the text (1 where it is there exactly)."""

    question: str
    kind: Literal["exact", "near"]
    share: float


class Contamination:
    """Finds the questions of an exam in texts. Built once: an index from their n-grams to the questions."""

    def __init__(self, questions: Iterable[str]) -> None:
        self.questions = sorted(set(questions))
        self._words = [words(question) for question in self.questions]
        self._ngrams = [_ngrams(own) for own in self._words]
        self._numbers = [_numbers(own) for own in self._words]
        self._beginnings: dict[Words, list[int]] = defaultdict(list)
        self._holders: dict[Words, list[int]] = defaultdict(list)
        self._asked: dict[str, bool] = {}
        for place, own in enumerate(self._words):
            if own:
                self._beginnings[own[:NGRAM]].append(place)
            if len(self._ngrams[place]) >= LEAST_NGRAMS:
                for ngram in self._ngrams[place]:
                    self._holders[ngram].append(place)

    def match(self, text: str) -> Match | None:
        """The question that the text asks, alone or among other words; of several the longest, exact ones first."""
        found = words(text)
        return self._exact(found) or self._near(found)

    def match_any(self, texts: Sequence[str]) -> Match | None:
        """A question that one of the texts asks, or a paragraph or line of it, or all of them one after the other.

        A near match may need that: what stands around a question has words and numbers of its own.
        """
        pieces = [piece for text in texts for piece in (text, *PARAGRAPH.split(text), *text.splitlines())]
        return next(filter(None, map(self.match, dict.fromkeys([*pieces, "\n".join(texts)]))), None)

    def asks(self, question: str) -> bool:
        """Whether a question asks one of the exam's. Remembered: every round wants to know it of the same problems."""
        if question not in self._asked:
            self._asked[question] = self.match_any([question]) is not None
        return self._asked[question]

    def _exact(self, found: Words) -> Match | None:
        """A question whose words follow upon each other in the text, whatever stands before and after them."""
        hits = {
            place
            for start in range(len(found))
            for length in range(1, NGRAM + 1)
            for place in self._beginnings.get(found[start : start + length], ())
            if self._words[place] == found[start : start + len(self._words[place])]
            and _is_whole(found, start, start + len(self._words[place]))
        }
        if not hits:
            return None
        longest = max(sorted(hits), key=lambda place: len(self._words[place]))
        return Match(self.questions[longest], "exact", 1.0)

    def _near(self, found: Words) -> Match | None:
        shared = Counter(place for ngram in _ngrams(found) for place in self._holders.get(ngram, ()))
        shares = {
            place: share
            for place, count in shared.items()
            if (share := count / len(self._ngrams[place])) >= THRESHOLD and self._same_numbers(place, found)
        }
        if not shares:
            return None
        nearest = max(sorted(shares), key=lambda place: shares[place])
        return Match(self.questions[nearest], "near", shares[nearest])

    def _same_numbers(self, place: int, found: Words) -> bool:
        """Whether a text has the question's numbers and no others: all of it, or the part of it that asks.

        That is from the first n-gram that they share to the last, with as much before and after as the question has. A
        question without numbers has them in its figure: many a text's part has as few.
        """
        if not (numbers := self._numbers[place]):
            return not _numbers(found)
        told, asked = _in_order(found), _in_order(self._words[place])
        shared = [start for start, ngram in enumerate(told) if ngram in self._ngrams[place]]
        before, after = asked.index(told[shared[0]]), asked[::-1].index(told[shared[-1]])
        part = found[max(0, shared[0] - before) : shared[-1] + NGRAM + after]
        return numbers in (_numbers(found), _numbers(part))


@lru_cache(maxsize=4)
def exam_index(questions: tuple[str, ...]) -> Contamination:
    """The index of an exam's questions, built once a process."""
    return Contamination(questions)


def words(text: str) -> Words:
    """The words, numbers and signs of a text, in lower case, without what only sets them."""
    plain = unicodedata.normalize("NFKC", FIGURE.sub(" ", text))
    plain = BARE_FRACTION.sub(r" \1 \2 ", SIZE.sub(r"\\", SPACING.sub(" ", plain))).replace("\\%", "%")
    return tuple(word.casefold().replace(",", "") for word in WORD.findall(plain))


def _is_whole(found: Words, start: int, end: int) -> bool:
    """Whether no calculation goes on before or after these words: `2 + 3 * 4` does not ask `2 + 3`."""
    neighbours = (*found[start - 1 : start], *found[end : end + 1])
    return not any(re.fullmatch(SIGN, word) for word in neighbours)


def _ngrams(found: Words) -> set[Words]:
    return set(_in_order(found))


def _in_order(found: Words) -> list[Words]:
    """All n-grams, as they follow upon each other."""
    return [found[start : start + NGRAM] for start in range(len(found) - NGRAM + 1)]


def _numbers(found: Words) -> Counter[str]:
    return Counter(word for word in found if word[0].isdecimal())
