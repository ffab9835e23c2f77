r"""Removes units from the end of an answer: from `5 \text{ cm}^2` or `5 square feet`, but not `5 \text{ or six}`."""

import re

TEXT = r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|[mh]box|math(?:rm|bf|it|sf|tt)|operatorname|emph)\s*"
UNIT_TEXT = re.compile(rf"\s*{TEXT}\{{([A-Za-z .,'/~-]*)\}}\s*(?:\^\s*\{{?\s*[23]\s*\}}?)?$")
UNIT_WORDS = re.compile(r"(?<=[0-9})])\s*([A-Za-z]+(?: [A-Za-z]+){0,3})\s*(?:\^\s*\{?\s*[23]\s*\}?)?$")
OPERATOR_END = re.compile(r"(?:[-+*/=<>^_(\[{:;,\\]|\\(?:cdot|times|div|pm|cup|cap|in|le|ge|ne))\s*$")
ONE_LETTER_UNITS = frozenset("agmshlLVWNJK")  # `a` for "of a pie"
# Inside `\text{…}`, any word can belong to a unit (`students`, `feet per second`), except these: they change the value.
OTHER_WORDS = """
    and or not no nor if is are was to either neither both but when where while unless except for with all base
    mod am pm times half thirds quarters hundred hundreds thousand thousands million millions billion billions
    trillion dozen plus minus over divided pi squared cubed negative infinity zero one two three four five six
    seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty fifty sixty eighty ninety wrong
    maybe than
"""
# Outside `\text{…}`, the letters of a word may be factors of a product, so only these words are units.
UNIT_NAMES = """
    unit units sq square cu cubic cm mm km dm ft yd mi kg mg gm gram grams kilogram kilograms pound pounds lb
    lbs ounce ounces oz inch inches foot feet yard yards mile miles meter meters metre metres centimeter
    centimeters kilometer kilometers millimeter millimeters liter liters litre litres ml gallon gallons second
    seconds sec secs minute minutes min mins hour hours hr hrs day days week weeks month months year years
    degree degrees deg radian radians percent dollar dollars cent cents euro euros usd mph kph per way ways
"""
NO_UNITS, UNITS = frozenset(OTHER_WORDS.split()), frozenset(UNIT_NAMES.split())


def without_units(plain: str) -> str:
    """Return the answer without the units that follow its value, such as `\\text{ cm}^2` or `square feet`."""
    for _ in range(3):
        plain = plain.rstrip(" .,;")
        as_text, as_words = UNIT_TEXT.search(plain), UNIT_WORDS.search(plain)
        if as_text and _is_unit(as_text[1]):
            value = plain[: as_text.start()]
        elif as_words and all(word.lower() in UNITS for word in as_words[1].split()):
            value = plain[: as_words.start()]
        else:
            break
        if not value.strip() or OPERATOR_END.search(value):
            break
        plain = value
    return plain


def _is_unit(text: str) -> bool:
    if re.fullmatch(r"\s*[ap]\.?\s?m\.?\s*", text):
        return False  # a time of day
    words = re.findall(r"[A-Za-z]+", text)
    return all((len(word) > 1 or word in ONE_LETTER_UNITS) and word.lower() not in NO_UNITS for word in words)
