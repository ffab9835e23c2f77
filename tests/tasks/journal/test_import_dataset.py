"""Imports through `datasets`: files, folders in the hub's layout; once, in order, or refused in one line."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conf.storage.home import InputError
from conf.storage.journal import Preference, Trace
from conf.storage.journal_file import read_file
from tasks.journal.import_dataset import import_rows
from tests.refusal import refusal
from tests.rewards.local_hub import write_dataset


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `datasets` would leave behind, and no hub."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def pairs(*numbers: int) -> list[dict[str, Any]]:
    return [{"prompt": f"{number} + 1?", "chosen": str(number + 1), "rejected": "no"} for number in numbers]


def jsonl(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(file)


def taught(done: dict[str, Any]) -> list[str]:
    entries = [entry for _, entry in read_file(Path(done["file"]))[0]]
    return [
        entry.responses[entry.chosen] if isinstance(entry, Preference) else entry.response
        for entry in entries
        if isinstance(entry, Preference | Trace)
    ]


def test_a_file_comes_in_order_and_only_once(tmp_path: Path, cache: Path) -> None:
    journal, source = tmp_path / "journal", jsonl(tmp_path / "picks.jsonl", pairs(3, 1, 2, 1))
    done = import_rows(journal, source)
    assert (done["added"], done["known"], done["refused"]) == (3, 1, [])
    assert taught(done) == ["4", "2", "3"]
    entry = read_file(Path(done["file"]))[0][0][1]
    assert entry.imported_from == "picks.jsonl"
    before = Path(done["file"]).read_bytes()
    again = import_rows(journal, source)
    assert (again["added"], again["known"]) == (0, 4)
    assert Path(done["file"]).read_bytes() == before
    more = import_rows(journal, jsonl(tmp_path / "picks.jsonl", pairs(9, 3)))
    assert (more["added"], more["known"]) == (1, 1)
    left = [file.read_bytes() for file in cache.rglob("*") if file.is_file()]
    assert not any(b"3 + 1?" in content for content in left)  # no copy of a private file stays anywhere else


def test_what_earlier_days_imported_is_known_and_what_their_owner_said_is_not(tmp_path: Path) -> None:
    journal, source = tmp_path / "journal", jsonl(tmp_path / "picks.jsonl", pairs(1, 2))
    today = Path(import_rows(journal, source)["file"])
    one, two = today.read_text().splitlines()
    own = json.loads(two)
    del own["imported_from"]
    (journal / "2020-01-01.jsonl").write_text(f"{one}\n{json.dumps(own)}\n")
    today.unlink()
    done = import_rows(journal, source)
    assert (done["added"], done["known"]) == (1, 1)


@pytest.mark.parametrize("suffix", ["parquet", "json"])
def test_other_files_and_the_first_rows_alone(tmp_path: Path, suffix: str) -> None:
    file, rows = tmp_path / f"picks.{suffix}", pairs(*range(50))
    pd.DataFrame(rows).to_parquet(file) if suffix == "parquet" else file.write_text(json.dumps(rows))
    done = import_rows(tmp_path / "journal", str(file), limit=3)
    assert taught(done) == ["1", "2", "3"]
    assert import_rows(tmp_path / "journal", str(file), limit=5)["added"] == 2


def test_a_set_in_the_hubs_layout(tmp_path: Path) -> None:
    chats = [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": f"{n}"}]} for n in "ab"]
    source = write_dataset(
        tmp_path / "set", {"picks": {"train": pairs(1), "test": pairs(2)}, "chats": {"train": chats}}
    )
    journal = tmp_path / "journal"
    assert taught(import_rows(journal, source, "test", "picks")) == ["3"]
    assert taught(import_rows(journal, source, subset="chats")) == ["3", "a", "b"]
    with pytest.raises(InputError, match="ValueError: .*split"):
        import_rows(journal, source, "validation", "picks")


def test_worked_solutions_come_with_their_truth_and_with_whose_problems_they_solve(tmp_path: Path) -> None:
    row = {"prompt": "2 + 2?", "response": r"\boxed{4}", "ground_truth": "4"}
    rows = [row, row | {"prompt": "3 + 1?", "benchmark": "gsm8k"}]
    done = import_rows(tmp_path / "journal", jsonl(tmp_path / "some.jsonl", rows), benchmark="math")
    found = [entry for _, entry in read_file(Path(done["file"]))[0] if isinstance(entry, Trace)]
    assert [(entry.benchmark, entry.truth) for entry in found] == [("math", "4"), ("gsm8k", "4")]
    done = import_rows(tmp_path / "picks", jsonl(tmp_path / "picks.jsonl", pairs(1)), benchmark="math")
    assert (done["added"], "math" in Path(done["file"]).read_text()) == (1, False)


def test_rows_that_make_no_line_are_named_and_the_others_come(tmp_path: Path) -> None:
    rows = [*pairs(1), {"prompt": "?", "chosen": "", "rejected": "x"}, {"colour": "red"}, *pairs(2)]
    source = Path(jsonl(tmp_path / "picks.jsonl", rows))
    source.write_text(f"{source.read_text()}\nnot JSON\n")
    done = import_rows(tmp_path / "journal", str(source))
    assert taught(done) == ["2", "3"]
    assert [row["row"] for row in done["refused"]] == [2, 3, 6]
    reasons = ("preference.responses.0: is blank", "columns (colour) are not recognised; known", "not valid JSON at")
    for row, reason in zip(done["refused"], reasons, strict=True):
        assert row["reason"].startswith(reason)


BAD = {
    "no format": ('{"question": "2 + 2?", "answer": "4"}', "columns (question, answer) are not recognised; known are "),
    "no row that is good": ('{"prompt": "?", "chosen": "a", "rejected": "a"}', "none of its 1 rows makes a line; "),
    "no JSON": ("<html>not found</html>", "none of its 1 rows makes a line; the first: not valid JSON at column 1"),
    "nothing": ("", "holds no rows; try another --split"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_imported_is_one_line(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "picks.jsonl"
    file.write_text(content)
    assert reason in refusal(import_rows, tmp_path / "journal", str(file))
    assert not (tmp_path / "journal").exists()


def test_a_source_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "picks.xlsx").write_text("x")
    assert "not a .jsonl, .json, .parquet file" in refusal(import_rows, tmp_path, str(tmp_path / "picks.xlsx"))
    assert "nobody/nothing: cannot be read (" in refusal(import_rows, tmp_path, "nobody/nothing")
    assert "cannot be read (" in refusal(import_rows, tmp_path, str(tmp_path / "missing.jsonl"))
