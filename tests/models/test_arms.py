"""How often each arm is drawn, and what its estimate follows."""

import pytest

from models.arms import follow, weights_of


def test_weights_by_hand() -> None:
    assert weights_of(["a", "b"], {"a": 0.3, "b": 0.1}, 0.2) == [pytest.approx(0.7), pytest.approx(0.3)]
    assert weights_of(["a", "new"], {"a": 0.3}, 0.0) == [0.5, 0.5]  # an arm never tried has the mean of the others
    assert weights_of(["a", "b"], {"a": 0.0, "b": 0.0}, 0.2) == [0.5, 0.5]
    assert weights_of(["a", "b"], {}, 0.2) == [0.5, 0.5]


def test_an_estimate_begins_with_what_is_seen_first_and_moves_by_its_rate() -> None:
    assert follow(None, 0.4, 0.1) == 0.4
    assert follow(0.4, 1.0, 0.25) == pytest.approx(0.55)
