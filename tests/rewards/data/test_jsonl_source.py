"""JSONL files: found where they may lie, and refused in one clear line where they are broken."""

import gzip
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.data.dataset_rows import checked, data_file, read_rows

FIELDS = {"question": str, "answer": str}
GOOD = b'{"question": "q", "answer": "#### 1"}\n'


def refused(path: Path, fields: dict[str, type] = FIELDS) -> str:
    """The one line with which the file is refused."""
    with pytest.raises(InputError) as caught:
        read_rows(path, fields)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_good_rows_with_blank_lines_a_byte_order_mark_and_further_fields(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD + b'\n  \r\n{"question": "a\\nb\xe2\x80\xa8c", "answer": "2", "more": 3}')
    assert read_rows(path, FIELDS) == [
        {"question": "q", "answer": "#### 1"},
        {"question": "a\nb\u2028c", "answer": "2", "more": 3},
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"question": "q", "ans', "line 2: not valid JSON (Unterminated string starting at at column 19)"),
        (b'{"question": "q"', "line 2: not valid JSON (Expecting ',' delimiter at column 17)"),
        (b'{"question": "\xff"}', "line 2: not valid JSON (not UTF-8 at byte 15)"),
        (b"[" * 100_000, "line 2: not valid JSON (a number too long or objects nested too deeply)"),
        (b"1" * 10_000, "line 2: not valid JSON (a number too long or objects nested too deeply)"),
        (b'["question", "answer"]', 'line 2: not a JSON object; expected {"question", "answer"}'),
        (b'{"question": "q"}', 'line 2: the field "answer" is missing; every row needs "question", "answer"'),
        (b'{"question": "q", "answer": 5}', 'line 2: the field "answer" is not a text'),
        (b'{"question": null, "answer": "5"}', 'line 2: the field "question" is not a text'),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + line + b"\n" + GOOD)
    assert refused(path).startswith(f"{path}, {said}")


def test_lines_are_counted_with_the_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + b"\n\n" + b"{}")
    assert refused(path).startswith(f"{path}, line 4: the field")


def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD))
    assert read_rows(path, FIELDS) == [{"question": "q", "answer": "#### 1"}]
    for broken in (gzip.compress(GOOD)[:-9], gzip.compress(GOOD)[:12], GOOD, b"", gzip.compress(GOOD)[:-4] + b"abcd"):
        path.write_bytes(broken)
        assert refused(path).startswith(f"{path}: ")


def test_a_missing_file_a_folder_and_an_empty_file(tmp_path: Path) -> None:
    missing, empty = tmp_path / "train.jsonl", tmp_path / "empty.jsonl"
    empty.write_bytes(b"\n")
    assert refused(missing).startswith(f"{missing}: no such file")
    assert "NIGHTSCHOOL_DATA" in refused(missing)
    assert refused(tmp_path).startswith(f"{tmp_path}: no such file")
    assert refused(empty) == f"{empty}: holds no rows; copy or download the file again"


def test_a_field_of_another_type() -> None:
    assert checked({"tests": []}, {"tests": list}, "here") == {"tests": []}
    with pytest.raises(InputError, match='^here: the field "tests" is not a list'):
        checked({"tests": "assert"}, {"tests": list}, "here")
    with pytest.raises(InputError, match='^here: the field "answer" is not an object'):
        checked({"answer": "x"}, {"answer": dict}, "here")
    with pytest.raises(InputError, match='^here: the field "share" is not float'):
        checked({"share": "1"}, {"share": float}, "here")


def test_where_a_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    assert data_file("gsm8k", "train.jsonl", None) is None
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(tmp_path / "data"))
    assert data_file("gsm8k", "train.jsonl", None) == tmp_path / "data" / "gsm8k" / "train.jsonl"
    assert data_file("gsm8k", "train.jsonl", str(tmp_path)) == tmp_path / "train.jsonl"
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "train.jsonl").touch()
    assert data_file("gsm8k", "train.jsonl", str(tmp_path)) == tmp_path / "gsm8k" / "train.jsonl"
    (tmp_path / "train.jsonl").touch()
    assert data_file("gsm8k", "train.jsonl", str(tmp_path)) == tmp_path / "train.jsonl"
