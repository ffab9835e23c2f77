"""Extracts the program from a model's reply: the last fenced block or, without one, the whole text."""

import re
from collections.abc import Iterator

# A fence has at most three spaces before it (CommonMark 0.31, section 4.5); a deeper one may be part of a docstring.
# Backticks that are followed by more backticks on the same line are inline code.
FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`\n]*$)|~{3,})(.*)$", re.MULTILINE)
LABEL = re.compile(r"[{.]*([\w+#-]*)")
PYTHON = ("", "python", "python3", "py", "py3")


def definition(name: str) -> re.Pattern[str]:
    """Return a pattern that matches a top-level definition of `name`, by `def`, `class` or assignment."""
    name = re.escape(name)
    return re.compile(rf"^(?:(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|{name}[ \t]*=(?!=))", re.MULTILINE)


def program_text(completion: str, entry_point: str | None = None) -> str | None:
    """Return the program to run: the last fenced block or, without one, the whole text; None if that is blank.

    With an `entry_point`, it is the last block that defines that name, if any does (as usage may follow a program).
    Text without a block is returned even if it is prose. Prose does not compile, so its verdict is `crashed`, whereas
    blank text gets `no_answer`. Fences without content are removed. Takes linear time and never raises.
    """
    block = last_block(completion, entry_point)
    if block is not None:
        return block
    bare = FENCE.sub("", _with_plain_line_ends(completion))
    return bare if bare.strip() else None


def last_block(completion: str, entry_point: str | None = None) -> str | None:
    """Return the content of the last fenced block that is not blank, or None if there is none.

    With an `entry_point`, it is the last one that defines that name, if any does.

    A block that is never closed extends to the end of the text. A block labelled with a language other than Python
    (```text, ```bash) counts only if no block is Python or unlabelled. Content loses the indentation of its fence.
    """
    blocks = [block for block in _blocks(_with_plain_line_ends(completion)) if block[1].strip()]
    if not blocks:
        return None
    if entry_point is not None:
        blocks = [block for block in blocks if definition(entry_point).search(_unindented(*block))] or blocks
    fence, content = next((block for block in reversed(blocks) if _label(block[0]) in PYTHON), blocks[-1])
    return _unindented(fence, content)


def _unindented(fence: re.Match[str], content: str) -> str:
    """Return a block's content without the indentation of its fence."""
    indent = len(fence[1])
    return re.sub(rf"^ {{1,{indent}}}", "", content, flags=re.MULTILINE) if indent else content


def _blocks(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each block's opening fence and content."""
    opened: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif not fence[3].strip() and fence[2].startswith(opened[2]):
            yield opened, text[opened.end() + 1 : fence.start()]
            opened = None
    if opened is not None:
        yield opened, text[opened.end() + 1 :]


def _label(fence: re.Match[str]) -> str:
    """Return the language that a fence names, in lower case, or an empty string if it names none."""
    label = LABEL.match(fence[3].strip())
    return label[1].lower() if label else ""


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
