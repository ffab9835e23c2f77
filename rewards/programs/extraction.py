"""The program in what a model wrote: the last fenced block, or the bare text."""

import re
from dataclasses import dataclass

# At most three spaces before a fence, as in CommonMark (0.31, section 4.5); a deeper one may be part of a docstring.
# Backticks that are followed by more on the same line are inline code.
FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`\n]*$)|~{3,})(.*)$", re.MULTILINE)
LABEL = re.compile(r"[{.]*([\w+#-]*)")
PYTHON = ("", "python", "python3", "py", "py3")


@dataclass(frozen=True)
class _Block:
    label: str  # of the language, in lower case; "" where it has none
    indent: int  # spaces before its fence
    content: str


def program_text(completion: str) -> str | None:
    """Return the program to run: the last fenced block, else the whole text; None where it is blank.

    Text without a fence is returned even if it is prose: it does not compile, so its verdict is `crashed` (`no_answer`
    is for blank texts). Empty fences are removed from such a text. Takes linear time and never raises.
    """
    text = _with_plain_line_ends(completion)
    block = last_block(text)
    if block is not None:
        return block
    bare = FENCE.sub("", text)
    return bare if bare.strip() else None


def last_block(completion: str) -> str | None:
    """Return the content of the last fenced block that is not blank; None where there is none.

    A last fence that is never closed extends to the end of the text. A block labelled with another language (```text,
    ```bash) counts only if no other block does. A fence's own indentation is removed from its content.
    """
    blocks = [block for block in _blocks(_with_plain_line_ends(completion)) if block.content.strip()]
    if not blocks:
        return None
    last = next((block for block in reversed(blocks) if block.label in PYTHON), blocks[-1])
    return re.sub(rf"^ {{1,{last.indent}}}", "", last.content, flags=re.MULTILINE) if last.indent else last.content


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    opened: re.Match[str] | None = None
    for fence in FENCE.finditer(text):
        info = fence[3].strip()
        if opened is None:
            opened = fence
        elif not info and fence[2].startswith(opened[2]):
            blocks.append(_block(opened, text[opened.end() + 1 : fence.start()]))
            opened = None
    if opened is not None:
        blocks.append(_block(opened, text[opened.end() + 1 :]))
    return blocks


def _block(fence: re.Match[str], content: str) -> _Block:
    label = LABEL.match(fence[3].strip())
    return _Block(label[1].lower() if label else "", len(fence[1]), content)


def _with_plain_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
