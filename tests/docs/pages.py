"""What README and docs/ show: fenced blocks, commands, links, and whole files; and a shell to run it in."""

import os
import re
import shlex
import subprocess
import sys
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
    """A fenced block. `info` is the word behind the fence; `line` is the fence's, from 1 on."""

    page: Path
    line: int
    info: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Step:
    """A command of a transcript, and what it prints according to the page."""

    command: str
    shown: str


def blocks(*infos: str) -> list[Block]:
    """Return the blocks of all pages with one of these infos; without any, all blocks."""
    return [block for page in PAGES for block in _blocks(page) if not infos or block.info in infos]


def inline_code(page: Path) -> list[str]:
    """Return the page's `code` in running text."""
    return [token.content for token in _inline(page) if token.type == "code_inline"]


def links(page: Path) -> list[str]:
    """Return the targets of the page's links and pictures."""
    targets = [token.attrGet("href") or token.attrGet("src") for token in _inline(page)]
    return [str(target) for target in targets if target]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the page's headings."""
    tokens = _tokens(page)
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def files(page: Path) -> dict[str, str]:
    """Return the files that the page shows whole, by name."""
    return {found[1]: block.text for block in _blocks(page) if (found := FILE.match(block.text))}


def transcript(block: Block) -> list[Step]:
    """Return the steps of a `console` block: a command after `$ `, its further lines after `> `, then its output."""
    found = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        length = 1 + next((n for n, line in enumerate(lines[1:]) if not line.startswith("> ")), len(lines) - 1)
        command = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:length])])
        found.append(Step(command, "\n".join(lines[length:]).rstrip()))
    return found


def commands(text: str) -> list[list[str]]:
    """Return the words of each shell command, without comments, redirections and variables set before it."""
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
    """Yield the tokens of each line; an open quote continues in the next one."""
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


def run_shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in a checkout, with its own `school/`; both outputs are in `stdout`."""
    others = ("PREFECT_API_URL", "MLFLOW_", "NIGHTSCHOOL_")  # the developer's, and other tests'
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)} | variables
    environment |= {"PYTHONPATH": str(folder), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


@cache
def _tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def _blocks(page: Path) -> Iterator[Block]:
    for token in _tokens(page):
        if token.type == "fence":
            yield Block(page, (token.map or [0])[0] + 1, token.info.strip(), token.content)


def _inline(page: Path) -> list[Token]:
    return [child for token in _tokens(page) if token.type == "inline" for child in token.children or ()]
