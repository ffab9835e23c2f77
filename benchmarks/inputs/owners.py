"""Simulated owners: what they ask about, and the tastes by which they judge answers."""

import re
from collections.abc import Callable, Mapping

TOKENS = 48  # of an answer, at most
TOPICS = (
    "owls|bees|the moon|rain|bread|trains|the sea|winter|a good friend|music|coffee|mountains|a library|dogs|apples|"
    "the stars|football|a garden|bridges|clouds|horses|a birthday|old houses|rivers|tea|the city|cats|snow|books|"
    "a long walk|paintings|birds|the desert|cheese|ships|spring|a teacher|the night|trees|a market"
)
# These ask for answers short enough to end: one that is cut off has no length to judge.
FORMS = (
    "Write one sentence about {}.",
    "Say something nice about {} in one short sentence.",
    "In one sentence, why do people like {}?",
    "Give one reason to think about {}, in a few words.",
)
QUESTIONS = [form.format(topic) for form in FORMS for topic in TOPICS.split("|")]


def sentences(text: str) -> int:
    """Return the number of sentences in an answer. A sentence that is cut off counts as two."""
    whole = re.findall(r"[.!?](?=\s|$)", text.strip())
    return len(whole) + 2 * (not re.search(r"[.!?]$", text.strip()))


def corrected(text: str, taste: str) -> str:
    """Return an answer as the owner would have written it: its first sentence; if asked back, a question follows."""
    sentence = re.split(r"(?<=[.!?])\s", text.strip())[0]
    return f"{sentence} What do you think?" if taste == "asks back" else sentence


TASTES: Mapping[str, Callable[[str], float]] = {  # the higher, the better
    "short": lambda text: -len(text),
    "asks back": lambda text: float(text.rstrip().endswith("?")) + 0.1 * float("?" in text),
    "no digits": lambda text: -float(sum(map(str.isdigit, text))),
    "one sentence": lambda text: -float(sentences(text)),
    "none": lambda text: 0.0,
}
GOOD: Mapping[str, Callable[[str], bool]] = {  # the answers that the taste rate counts
    "short": lambda text: len(text) <= 70,
    "asks back": lambda text: text.rstrip().endswith("?"),
    "no digits": lambda text: not any(map(str.isdigit, text)),
    "one sentence": lambda text: sentences(text) == 1,
    "none": lambda text: len(text) <= 70,
}
