"""No test sees what another has read from the hub."""

import pytest

from rewards.data import dataset_rows


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> None:
    dataset_rows._hub_split.cache_clear()
