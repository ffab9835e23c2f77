"""Rows from the hub: read by `datasets` itself from folders in the hub's layout; one line where there is no hub."""

from pathlib import Path

import pytest

from conf.storage.home import InputError
from rewards.data.dataset_rows import hub_rows
from tests.rewards.local_hub import write_dataset

FIELDS = {"question": str, "answer": str}
ROWS = {
    "main": {"train": [{"question": "1+1", "answer": "2"}, {"question": "1+2", "answer": "3"}]},
    "other": {"train": [{"question": "1*1", "answer": "1"}], "test": [{"question": "2*2", "answer": "4"}]},
}


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data set of two configurations, as the hub lays it out."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return write_dataset(tmp_path / "set", ROWS)


def refused(dataset: str, config: str | None, split: str, fields: dict[str, type] = FIELDS) -> str:
    with pytest.raises(InputError) as caught:
        hub_rows(dataset, config, split, fields)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_rows_of_a_configuration_and_split_in_their_order(dataset: str) -> None:
    assert hub_rows(dataset, "main", "train", FIELDS) == ROWS["main"]["train"]
    assert hub_rows(dataset, "other", "test", FIELDS) == ROWS["other"]["test"]


def test_a_set_of_one_configuration_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    only = write_dataset(tmp_path / "set", {"default": ROWS["other"]})
    assert hub_rows(only, None, "test", FIELDS) == ROWS["other"]["test"]


def test_a_row_without_a_field_is_named(dataset: str) -> None:
    said = refused(dataset, "main", "train", {"question": str, "solution": str})
    assert said.startswith(f'{dataset}, main train row 0: the field "solution" is missing')
    assert 'field "answer" is not a whole number' in refused(dataset, "main", "train", {"answer": int})


def test_a_split_or_configuration_that_is_not_there_is_one_line(dataset: str) -> None:
    assert refused(dataset, "main", "test").startswith(f"{dataset} cannot be loaded from the hub (ValueError: ")
    assert refused(dataset, "third", "train").startswith(f"{dataset} cannot be loaded from the hub (ValueError: ")


def test_a_hub_out_of_reach_is_one_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    said = refused("openai/gsm8k", "main", "train")
    assert said.startswith("openai/gsm8k cannot be loaded from the hub (")
    assert "set `source` or NIGHTSCHOOL_DATA to a folder with the data, or check the network" in said


def test_the_revision_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda *where, **what: asked.append((where, what)) or [])
    assert hub_rows("openai/gsm8k", "main", "test", FIELDS, "abc") == []
    assert asked == [(("openai/gsm8k", "main"), {"split": "test", "revision": "abc"})]
