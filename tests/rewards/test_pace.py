"""That the pace tells linear from quadratic."""

import re

import pytest

from tests.rewards.pace import LINEAR, LONGEST, walks

TEXT = "a" * LONGEST


def test_a_pattern_that_begins_anew_at_every_character_is_found_out() -> None:
    assert walks(lambda: re.search("a+b", TEXT)) > LINEAR


@pytest.mark.parametrize("pattern", ["b", "[^b]*$", "(?:a|b)", "a{1,9}b"])
def test_a_pattern_that_goes_through_once_is_not(pattern: str) -> None:
    assert walks(lambda: re.findall(pattern, TEXT)) < LINEAR / 4
