"""The program in what a model wrote: the last fenced block, or the bare text."""

import re
from dataclasses import dataclass

# At most three spaces before a fence, as in CommonMark (0.31, section 4.5): a deeper one belongs to a docstring, say.
# Backticks that more backticks follow are code within a line.
FENCE = re.compile(r"^( {0,3})(`{3,}(?=[^`\n]*$)|~{3,})(.*)$", re.MULTILINE)
LABEL = re.compile(r"[{.]*([\w+#-]*)")
PYTHON = ("", "python", "python3", "py", "py3")


@dataclass(frozen=True)
class _Block:
    label: str  # of the language, in lower case; "" where it has none
    indent: int  # spaces before its fence
    content: str


def program_text(completion: str) -> str | None:
    """The program to run: the last fenced block, else the whole text; None where either is blank.

    Text without a fence is handed on even where it is plainly prose: it does not compile, so its verdict is `crashed`
    (`no_answer` is for what holds no text at all). Fences with nothing in them are taken out of such a text.
    Linear in the length of the text. Never raises.
    """
    text = _with_plain_line_ends(completion)
    block = last_block(text)
    if block is not None:
        return block
    bare = FENCE.sub("", text)
    return bare if bare.strip() else None


def last_block(completion: str) -> str | None:
    """The content of the last fenced block that is not blank; None where there is none.

    A last fence that was never closed counts to the end of the text. A block that is labelled with another language
    (```text, ```bash) counts only where no other block does. A fence's own indentation is taken off its content.
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
