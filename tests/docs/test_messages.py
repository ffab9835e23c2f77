"""Each message that docs/messages.md explains is one that the program says: its words are looked for in the source."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

PACKAGES = ("flows", "tasks", "rewards", "models", "conf")
OWN = 14  # characters of a piece of a message, from which on it says what it is


def texts(source: str) -> Iterator[str]:
    """Every text in a module; `…` stands where something is filled in when it is said."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def program() -> str:
    """All that the program may say."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return "\n".join(text for file in files for text in texts(file.read_text()))


def messages() -> list[str]:
    """Those of the page: the `code` that a row of a table begins with."""
    page = (ROOT / "docs" / "messages.md").read_text()
    return [found[2] for found in re.finditer(r"^\| (`+) ?(.+?) ?\1 \|", page, re.MULTILINE)]


def pieces(message: str) -> list[str]:
    """A message without what is filled in, cut where two texts of the program may have been joined."""
    found = [piece.strip(" :;()") for piece in re.split(r"…|[;:] | \(", message)]
    return [piece for piece in found if len(piece) >= OWN]


def test_every_message_is_the_programs(program: str) -> None:
    assert len(messages()) > 40
    for message in messages():
        assert pieces(message), f"{message}: too little of it is the program's own"
        assert [piece for piece in pieces(message) if piece not in program] == [], message


def test_an_invented_message_is_found(program: str) -> None:
    assert [piece in program for piece in pieces("the night is too dark to go on; make room")] == [False]
