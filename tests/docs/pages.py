"""What README and docs/ show: fenced blocks, commands, links, and the files that a page has its reader write."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SEPARATORS = {"|", "||", "&&", "&", ";", "(", ")"}
REDIRECTIONS = {"<", ">", ">>", "<<", ">&"}
# The first line of a block that is a file: `# my-night.yaml`, `# rewards/spelling.py`
FILE = re.compile(r"# ([\w./-]+\.(?:yaml|py))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block. `info` is what stands behind the fence; `line` is the fence's, from 1 on."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Step:
    """A command of a transcript, and what the page shows that it prints."""

    command: str
    shown: str


def blocks(*infos: str) -> list[Block]:
    """All blocks of all pages with one of these infos; without any, all blocks."""
    return [block for page in PAGES for block in _blocks(page) if not infos or block.info in infos]


def inline_code(page: Path) -> list[str]:
    """The page's `code` in running text."""
    return [token.content for token in _inline(page) if token.type == "code_inline"]


def links(page: Path) -> list[str]:
    """Where the page's links and pictures lead."""
    places = [token.attrGet("href") or token.attrGet("src") for token in _inline(page)]
    return [str(place) for place in places if place]


def anchors(page: Path) -> set[str]:
    """The page's headings, as GitHub makes names of them."""
    tokens = _tokens(page)
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def files(page: Path) -> dict[str, str]:
    """The files that the page shows whole, by their names."""
    return {found[1]: block.text for block in _blocks(page) if (found := FILE.match(block.text))}


def transcript(block: Block) -> list[Step]:
    """The steps of a `console` block: a command behind `$ `, its further lines behind `> `, then what it prints."""
    found = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        length = 1 + next((n for n, line in enumerate(lines[1:]) if not line.startswith("> ")), len(lines) - 1)
        command = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:length])])
        found.append(Step(command, "\n".join(lines[length:]).rstrip()))
    return found


def commands(text: str) -> list[list[str]]:
    """The words of each command of a shell's text, without comments, redirections and variables set before it."""
    found: list[list[str]] = []
    for line in _lines(re.sub(r"\\\n", " ", text)):
        words: list[str] = []
        tokens = iter(line)
        for token in tokens:
            if token in SEPARATORS:
                found.append(words)
                words = []
            elif token in REDIRECTIONS:
                next(tokens, None)
            elif words or not re.match(r"\w+=", token):
                words.append(token)
        found.append(words)
    return [words for words in found if words]


def _lines(text: str) -> Iterator[list[str]]:
    """The tokens of each line; a quote that is open goes on in the next one."""
    begun = ""
    for line in text.splitlines(keepends=True):
        lexer = shlex.shlex(begun + line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            yield list(lexer)
            begun = ""
        except ValueError:  # no closing quotation
            begun += line
    assert not begun, f"a quote is never closed: {begun}"


@cache
def _tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def _blocks(page: Path) -> Iterator[Block]:
    for token in _tokens(page):
        if token.type == "fence":
            yield Block(page, (token.map or [0])[0] + 1, token.info.strip(), token.content)


def _inline(page: Path) -> list[Token]:
    return [child for token in _tokens(page) if token.type == "inline" for child in token.children or ()]
