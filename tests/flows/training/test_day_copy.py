"""Why a night has no day copy."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from flows.training import day_copy
from flows.training.day_copy import OwnersDay
from models.hf.checkpoint import MergeError


def test_a_wrong_merge_is_reported_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner should report it: a merge rounds stochastically, so no change is too small for it."""
    monkeypatch.setattr(day_copy, "committed", lambda folder: folder)
    monkeypatch.setattr(day_copy, "known_anchors", lambda home, champion: [])
    night: Any = MagicMock()
    night.merge.side_effect = MergeError("the merge is wrong; leave `lora` out of the configuration, and report this")
    why = OwnersDay(night, tmp_path, MagicMock(), MagicMock(), MagicMock())._make()
    assert why == f"The day copy could not be merged: {night.merge.side_effect}."
