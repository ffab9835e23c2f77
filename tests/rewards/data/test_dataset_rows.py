"""Rows of datasets, from JSONL and from the hub; bad data is refused in one clear line."""

import gzip
from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.data.dataset_rows import data_file, hub_rows, read_rows
from tests.refusal import refusal
from tests.rewards.local_hub import write_dataset

FIELDS = {"question": str, "answer": str}
GOOD = b'{"question": "q", "answer": "#### 1"}\n'
HUB = {
    "main": {"train": [{"question": "1+1", "answer": "2"}, {"question": "1+2", "answer": "3"}]},
    "other": {"train": [{"question": "1*1", "answer": "1"}], "test": [{"question": "2*2", "answer": "4"}]},
}


def refused(path: Path) -> str:
    """The one line with which the file is refused."""
    return refusal(read_rows, path, FIELDS)


def test_good_rows_with_blank_lines_a_byte_order_mark_and_further_fields(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD + b'\n  \r\n{"question": "a\\nb\xe2\x80\xa8c", "answer": "2", "more": 3}')
    assert read_rows(path, FIELDS) == [
        {"question": "q", "answer": "#### 1"},
        {"question": "a\nb\u2028c", "answer": "2", "more": 3},
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"question": "q", "ans', "not valid JSON at column 19; copy the file again, or correct or remove the line"),
        (b'["question", "answer"]', "not a JSON object"),
        (b'{"question": "q"}', 'the field "answer" is missing; every row needs "question", "answer"'),
        (b'{"question": "q", "answer": 5}', 'the field "answer" is not a text'),
    ],
)
def test_a_broken_line_is_named_counting_the_blank_ones(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD + b"\n\n" + line + b"\n" + GOOD)
    assert refused(path).startswith(f"{path}, line 4: {message}")


def test_one_array(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b"[%b]" % GOOD)
    assert read_rows(path, FIELDS) == [{"question": "q", "answer": "#### 1"}]
    for broken in (b"[{", b"{}", b"[]", b"[1]", b"1"):
        path.write_bytes(broken)
        assert refused(path).startswith(str(path))


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


def test_where_a_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    assert data_file("gsm8k", None, "train.jsonl") is None
    monkeypatch.setenv("NIGHTSCHOOL_DATA", str(tmp_path / "data"))
    assert data_file("gsm8k", None, "train.jsonl") == tmp_path / "data" / "gsm8k" / "train.jsonl"
    assert data_file("gsm8k", str(tmp_path), "train.jsonl") == tmp_path / "train.jsonl"
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "train.jsonl").touch()
    assert data_file("gsm8k", str(tmp_path), "train.jsonl") == tmp_path / "gsm8k" / "train.jsonl"
    assert data_file("gsm8k", str(tmp_path), "other.jsonl", "train.jsonl") == tmp_path / "gsm8k" / "train.jsonl"
    (tmp_path / "train.jsonl").touch()
    assert data_file("gsm8k", str(tmp_path), "train.jsonl") == tmp_path / "train.jsonl"


def test_rows_from_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by `datasets` itself, from folders in the hub's layout."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    dataset = write_dataset(tmp_path / "set", HUB)
    assert hub_rows(dataset, "main", "train", FIELDS) == HUB["main"]["train"]
    assert hub_rows(dataset, "other", "test", FIELDS) == HUB["other"]["test"]
    with pytest.raises(InputError, match='main train row 0: the field "solution" is missing'):
        hub_rows(dataset, "main", "train", {"solution": str})
    for config, split in (("main", "test"), ("third", "train")):
        with pytest.raises(InputError, match=r"set cannot be loaded from the hub \(ValueError: [^\n]*$"):
            hub_rows(dataset, config, split, FIELDS)
    only = write_dataset(tmp_path / "only", {"default": HUB["other"]})
    assert hub_rows(only, None, "test", FIELDS) == HUB["other"]["test"]
