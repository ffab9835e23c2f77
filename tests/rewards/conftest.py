"""No test sees what another has read from the hub."""

from collections.abc import Iterator

import pytest

from rewards.data import benchmarks


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    yield
    benchmarks._built_in.cache_clear()
