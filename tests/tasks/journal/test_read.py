"""Lessons are known by their content: an edited line is another one, and places and times do not matter."""

from pathlib import Path

import pytest

from tasks.journal.read import PIECE, lessons_in, pieces, valid_lines
from tests.tasks.doubles.journals import corrected, journal, words

DATE = "2026-11-20"


def names(home: Path) -> set[str]:
    return lessons_in(home / "journal", DATE)


def test_the_same_said_again_is_a_lesson_of_its_own_wherever_it_was_written(tmp_path: Path) -> None:
    """What makes two lines the same: tests/conf/storage/test_journal.py."""
    journal(tmp_path, corrected("4"))
    (first,) = names(tmp_path)
    journal(tmp_path, corrected("4"))
    journal(tmp_path, corrected("4"), name="talks.jsonl")
    assert names(tmp_path) == {first, f"{first}-2", f"{first}-3"}


def test_each_piece_of_a_text_is_a_lesson_so_that_an_edit_changes_few(tmp_path: Path) -> None:
    book = "\n\n".join(f"{number} " + "owl " * 300 for number in range(10))
    file = journal(tmp_path, words(book))
    (found,) = valid_lines(tmp_path / "journal", DATE)
    assert [row["text"] for row in found.rows.values()] == pieces(book)
    before = names(tmp_path)
    file.write_text(file.read_text().replace("3 owl", "3 elk"))
    assert (len(before), len(names(tmp_path) - before)) == (10, 1)


@pytest.mark.parametrize(
    "text", ["a", "a b\n\nc", "word " * 1000, "x" * 5000, "a\n\n" + "b " * 3000 + "\n\nc", "\n\n\n\na"]
)
def test_pieces_hold_all_words_in_order(text: str) -> None:
    found = pieces(text)
    assert all(0 < len(piece) <= PIECE for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())
