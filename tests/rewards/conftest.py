"""No test sees what another has read from the hub."""

from collections.abc import Iterator

import pytest

from rewards.data import dataset_rows


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    yield
    dataset_rows._hub_split.cache_clear()
