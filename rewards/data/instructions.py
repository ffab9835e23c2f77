"""Requests for answers in a form that a program can check, after IFEval (Zhou et al. 2023, arXiv:2311.07911)."""

import re
from collections.abc import Callable, Mapping

from conf.storage.home import InputError
from rewards.verifier import Attempt, Benchmark, Problem, Score, Split

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
# By form: the request, with {} for the topic, and a check of the answer. Even a small student can do these.
FORMS: Mapping[str, tuple[str, Callable[[str, str], bool]]] = {
    "sentence": (
        "Write exactly one sentence about {}.",
        lambda answer, topic: len(SENTENCE_END.findall(answer)) == 1 and "\n" not in answer,
    ),
    "question": ("Ask me a question about {}.", lambda answer, topic: answer.endswith("?")),
    "word": (
        'Write a sentence about {} that contains the word "often".',
        lambda answer, topic: "often" in WORD.findall(answer.lower()),
    ),
    "completion": (
        "Complete the sentence: I like {} because",
        lambda answer, topic: answer.lower().removeprefix("i like ").startswith(f"{topic} because "),
    ),
    "yes or no": (
        "Do you like {}? Answer only yes or no.",
        lambda answer, topic: bool(re.fullmatch(r"(yes|no)[.!]?", answer, re.IGNORECASE)),
    ),
}
TOPICS = (
    "bees", "bicycles", "birds", "books", "bread", "cities", "clocks", "coffee", "cooking", "dogs", "flowers",
    "football", "forests", "gardens", "horses", "islands", "letters", "mountains", "museums", "music", "old houses",
    "rain", "rivers", "school", "sleep", "the moon", "the sea", "trains", "winter", "wooden toys",
)  # fmt: skip


class Instructions(Benchmark):
    """150 exam problems (five forms of answer, each on thirty topics), and no training problems.

    They check that an instruction-tuned student keeps these skills while it is trained on something else.
    """

    name = "instructions"
    splits = ("test",)
    bounded = True

    def problems(self, split: Split) -> list[Problem]:
        """Return the exam's problems; each problem's subject is its form. Raises InputError for `train`."""
        if split != "test":
            raise InputError("instructions: it has exam problems only; use it in exam.guards")
        return [
            Problem(f"instructions/{form}/{topic}", self.name, asked.format(topic), topic, subject=form)
            for form, (asked, _) in FORMS.items()
            for topic in TOPICS
        ]

    def score_one(self, attempt: Attempt) -> Score:
        """Give a reward of 1 for at least three words (one for "yes or no") in the requested form, else 0."""
        answer, form = attempt.completion.strip(), attempt.problem.problem_id.split("/")[1]
        enough = 1 if form == "yes or no" else 3
        if len(WORD.findall(answer)) < enough:
            return Score.of("no_answer")
        return Score.of("correct" if FORMS[form][1](answer, attempt.problem.truth) else "wrong")
