r"""What stands in the last box of a solution: `\boxed{…}`, `\fbox{…}`, `\boxed 5`.

One pass over the text, whatever its braces: a box counts when its brace is closed; `\{` and `\}` are no braces.
"""

import re

# Every run of backslashes is taken whole, without a way back, so that a text of nothing else takes linear time. A
# doubled backslash before `boxed` is a box as well: models that read much JSON write it so.
BOX = r"\\++(?:boxed|fbox)(?![A-Za-z])\s*+"
TOKEN = re.compile(rf"(?P<box>{BOX})|(?:\\\\)*+\\[{{}}]|\\++|(?P<brace>[{{}}])")
BARE = re.compile(
    r"-?[0-9]++(?:[.,][0-9]++)*+|-?\\[dt]?frac(?:\{[0-9]{1,20}\}\{[0-9]{1,20}\}|[0-9]{2}(?![0-9]))|[A-Za-z](?![A-Za-z])"
)


def has_box(text: str) -> bool:
    """Whether a box begins anywhere, complete or not."""
    return re.search(r"\\(?:boxed|fbox)(?![A-Za-z])", text) is not None


def last_boxed(text: str) -> str | None:
    r"""The content of the complete box that begins last and is not empty; None where there is none.

    Of nested boxes that is the inner one. An unclosed box does not count, nor one that only repeats the prompt's
    own empty `\boxed{}`. Without a brace, `\boxed 5` holds a number, a plain fraction or a single letter.
    """
    start = max(text.rfind(r"\boxed"), text.rfind(r"\fbox"))
    if start < 0:
        return None
    return _last_closed(text[start:]) or _last_closed(text)  # most texts are decided by their last box


def _last_closed(text: str) -> str | None:
    last: tuple[int, str] = (-1, "")
    open_braces: list[int] = []  # where each begins; a box's own brace is in `boxes`
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
