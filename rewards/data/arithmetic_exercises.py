"""Generated exercises in five levels: stories and sums with their worked steps.

An exercise is a chain of operations on one running value. Its *expression* lists each step's calculation, as in
`5 + 7; 12 - 3`; if the first step is a sum or product, its two terms are sorted by size. A hash of kind and expression
assigns each exercise to the exam or to training, so no seed and no wording can bring an exam problem into training. The
same sum may still occur in training as one kind of exercise and in the exam as another.
"""

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewards.verifier import Split

NAMES = ("Anna", "Ben", "Cora", "David", "Emma", "Finn", "Grace", "Hugo", "Ines", "Jack", "Lena", "Mia", "Noah", "Tom")
THINGS = ("apples", "books", "cards", "coins", "eggs", "marbles", "pencils", "shells", "stamps", "stickers")
EXAM_SHARE = 4  # one in this many expressions of each kind belongs to the exam

# By level: the kinds of exercise, each of which is a chain of operations.
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "1": (("plus",), ("minus",), ("times",), ("gain",), ("lose",), ("boxes",), ("share",)),
    "2": (("plus", "minus"), ("times", "plus"), ("gain", "lose"), ("boxes", "gain"), ("boxes", "lose"), ("compare",)),
    "3": (("gain", "lose", "gain"), ("boxes", "gain", "lose"), ("gain", "gain", "lose"), ("boxes", "lose", "double")),
    "4": (("boxes", "gain", "lose", "double"), ("gain", "double", "lose", "gain"), ("boxes", "gain", "lose", "split")),
    "5": (
        ("boxes", "gain", "percent", "lose"),
        ("gain", "double", "lose", "split"),
        ("boxes", "percent", "gain", "split"),
    ),
}
LARGEST = {"1": 20, "2": 10, "3": 50, "4": 100, "5": 400}
SUM = re.compile(r"[0-9]{1,4}(?: [*/] [0-9]{1,4}){0,4}(?: [+-] [0-9]{1,4}){0,4}")
OPERATIONS = {"+": "plus", "-": "minus", "*": "times", "/": "share"}
TOO_LARGE, MOST_STEPS = 10_000, 4
LARGE = 100  # every level-5 exercise has at least one step with a larger result


@dataclass(frozen=True)
class Exercise:
    """A question with its steps (`7 + 5 = 12`) and its answer."""

    level: str
    kind: str
    question: str
    steps: tuple[str, ...]
    answer: int

    @property
    def expression(self) -> str:
        """The left side of each step (`5 + 7; 12 - 3`). If the first step is a sum or product, its terms are sorted."""
        left = [step.split(" = ")[0] for step in self.steps]
        first, operator, second = left[0].split()
        if operator in "+*" and int(first) > int(second):
            left[0] = f"{second} {operator} {first}"
        return "; ".join(left)

    @property
    def split(self) -> Split:
        """The split of the exercise, which depends on its kind and expression but not on its wording."""
        digest = hashlib.sha256(f"{self.kind}: {self.expression}".encode()).digest()
        return "test" if digest[0] % EXAM_SHARE == 0 else "train"


def exercises(seed: str, levels: tuple[str, ...], split: Split) -> Iterator[Exercise]:
    """Yield exercises of one split endlessly, drawing uniformly from the kinds of all `levels`.

    The same seed gives the same exercises on every machine.
    """
    chance = random.Random(f"arithmetic {seed}")
    kinds = [(level, chain) for level in levels for chain in KINDS[level]]
    while True:
        level, chain = chance.choice(kinds)
        exercise = _exercise(level, chain, chance)
        if exercise is not None and exercise.split == split:
            yield exercise


def written_exercise(text: str) -> Exercise | None:
    """Return the exercise that a line like `12 + 7 - 4` poses; None if it is not a calculation of one to four steps.

    Products and quotients must come first, so that calculating from left to right is correct. Every value must be a
    whole number from 0 to 9,999.
    """
    if not SUM.fullmatch(text):
        return None
    first, *rest = text.split()
    value, steps, chain = int(first), [], []
    for symbol, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        if symbol == "/" and (number == 0 or value % number):
            return None
        after = {"+": value + number, "-": value - number, "*": value * number, "/": value // (number or 1)}[symbol]
        if not 0 <= after < TOO_LARGE:
            return None
        steps.append(f"{value} {symbol} {number} = {after}")
        chain.append(OPERATIONS[symbol])
        value = after
    if not 0 < len(steps) <= MOST_STEPS:
        return None
    return Exercise(str(len(steps)), "-".join(chain), f"What is {text}?", tuple(steps), value)


def _exercise(level: str, chain: tuple[str, ...], chance: random.Random) -> Exercise | None:
    """Return a random exercise of this kind; None if its numbers are negative, fractional or, at level 5, too small."""
    if chain[0] in ("plus", "minus", "times"):
        story = _sum(level, chain, chance)
    elif chain == ("compare",):
        story = _comparison(level, chance)
    else:
        story = _story(level, chain, chance)
    if story is None:
        return None
    question, steps, answer = story
    if level == "5" and all(int(step.split(" = ")[1]) <= LARGE for step in steps):
        return None
    return Exercise(level, "-".join(chain), question, tuple(steps), answer)


def _sum(level: str, chain: tuple[str, ...], chance: random.Random) -> tuple[str, list[str], int] | None:
    value = chance.randint(1, LARGEST[level])
    text, steps = str(value), []
    for operation in chain:
        number = chance.randint(1, 10 if operation == "times" else LARGEST[level])
        results = {"plus": ("+", value + number), "minus": ("-", value - number), "times": ("*", value * number)}
        symbol, after = results[operation]
        if after < 0:
            return None
        steps.append(f"{value} {symbol} {number} = {after}")
        text, value = f"{text} {symbol} {number}", after
    return f"What is {text}?", steps, value


def _comparison(level: str, chance: random.Random) -> tuple[str, list[str], int]:
    name, other = chance.sample(NAMES, 2)
    things = chance.choice(THINGS)
    first, more = chance.randint(2, LARGEST[level]), chance.randint(2, LARGEST[level])
    second = first + more
    question = (
        f"{name} has {first} {things}. {other} has {more} more than {name}. How many {things} do they have together?"
    )
    return question, [f"{first} + {more} = {second}", f"{first} + {second} = {first + second}"], first + second


def _story(level: str, chain: tuple[str, ...], chance: random.Random) -> tuple[str, list[str], int] | None:
    name, things = chance.choice(NAMES), chance.choice(THINGS)
    largest, steps, sentences = LARGEST[level], [], []
    value = chance.randint(2, largest)
    if chain[0] == "boxes":
        boxes, each = chance.randint(2, 10), chance.randint(2, min(largest, 20) if level != "5" else 40)
        value = boxes * each
        sentences.append(f"{name} has {boxes} boxes with {each} {things} each.")
        steps.append(f"{boxes} * {each} = {value}")
    else:
        sentences.append(f"{name} has {value} {things}.")
    question = f"How many {things} does {name} have{'' if chain == ('boxes',) else ' now'}?"
    for operation in chain[1:] if chain[0] == "boxes" else chain:
        event = _event(operation, value, name, things, level, chance)
        if event is None:
            return None
        sentence, step, value = event
        sentences.append(sentence)
        steps.append(f"{step} = {value}")
        if operation == "share":
            question = f"How many {things} does each of them get?"
    return " ".join([*sentences, question]), steps, value


def _event(
    operation: str, value: int, name: str, things: str, level: str, chance: random.Random
) -> tuple[str, str, int] | None:
    """Return the next event as (sentence, left side of the step, new value), or None if the event is impossible."""
    number = chance.randint(2, LARGEST[level])
    noun = "" if level == "1" else f" {things}"
    parts = chance.choice((2, 3, 4, 5, 6, 8, 10))
    if operation == "gain":
        verb = chance.choice(("buys", "finds", "gets"))
        return f"{name} {verb} {number} more{noun}.", f"{value} + {number}", value + number
    if operation == "lose":
        verb = chance.choice(("gives away", "loses", "sells"))
        return (f"{name} {verb} {number}{noun}.", f"{value} - {number}", value - number) if number <= value else None
    if value == 0:
        return None
    if operation == "double":
        return f"Then the number of {things} doubles.", f"{value} * 2", value * 2
    if operation == "percent":
        percent = chance.choice((10, 20, 25, 50, 75))
        kept = value * (100 - percent)
        sentence = f"Then {name} sells {percent} percent of all the {things}."
        return (sentence, f"{value} * {100 - percent} / 100", kept // 100) if kept % 100 == 0 else None
    if value % parts:
        return None
    if operation == "share":
        return f"{name} shares them equally among {parts} friends.", f"{value} / {parts}", value // parts
    sentence = f"Then {name} splits all the {things} equally into {parts} bags and keeps only one of the bags."
    return sentence, f"{value} / {parts}", value // parts
