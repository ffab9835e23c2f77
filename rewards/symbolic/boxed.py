r"""Finds the content of the last box in a solution: `\boxed{…}`, `\fbox{…}` or `\boxed 5`.

The scan takes linear time. A box with a brace counts only if the brace is closed; `\{` and `\}` are not braces.
"""

import re

# Runs of backslashes are matched possessively, so that a text of only backslashes takes linear time. A doubled
# backslash before `boxed` also counts as a box, because models trained on JSON write it.
BOX = r"\\++(?:boxed|fbox)(?![A-Za-z])\s*+"
TOKEN = re.compile(rf"(?P<box>{BOX})|(?:\\\\)*+\\[{{}}]|\\++|(?P<brace>[{{}}])")
BARE = re.compile(
    r"-?[0-9]++(?:[.,][0-9]++)*+|-?\\[dt]?frac(?:\{[0-9]{1,20}\}\{[0-9]{1,20}\}|[0-9]{2}(?![0-9]))|[A-Za-z](?![A-Za-z])"
)


def has_box(text: str) -> bool:
    """Return whether a box begins anywhere in the text, complete or not."""
    return re.search(r"\\(?:boxed|fbox)(?![A-Za-z])", text) is not None


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last complete box that is not empty, or None if there is none.

    If boxes are nested, the innermost counts. Unclosed boxes do not count, nor does the prompt's empty `\boxed{}`. The
    content of a box without braces (`\boxed 5`) can be a number, a plain fraction or a single letter.
    """
    start = max(text.rfind(r"\boxed"), text.rfind(r"\fbox"))
    if start < 0:
        return None
    return _last_closed(text[start:]) or _last_closed(text)  # the last box is enough for most texts


def _last_closed(text: str) -> str | None:
    last: tuple[int, str] = (-1, "")
    open_braces: list[int] = []  # positions; `boxes` has those that open a box
    boxes: set[int] = set()
    after_box = -1
    for token in TOKEN.finditer(text):
        if token["box"]:
            after_box = token.end()
            bare = BARE.match(text, after_box)
            if bare is not None:
                last = max(last, (token.start(), bare[0]))
        elif token["brace"] == "{":
            if token.start() == after_box:
                boxes.add(token.start())
            open_braces.append(token.start())
        elif token["brace"] == "}" and open_braces:
            begin = open_braces.pop()
            if begin in boxes and begin > last[0]:
                content = text[begin + 1 : token.start()].strip()
                if content:
                    last = (begin, content)
    return last[1] or None
