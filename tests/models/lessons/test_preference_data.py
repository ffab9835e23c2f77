"""How much a pick counts, and which conversations are held out: by hand and as laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.lessons.preference_data import age_weight, is_held_out, opening


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_the_weight_halves_every_half_life() -> None:
    assert [age_weight(nights, 14.0) for nights in (0, 14, 28)] == [1.0, 0.5, 0.25]
    assert age_weight(7, 14.0) == pytest.approx(0.7071, abs=1e-4)
    assert age_weight(-3, 14.0) == 1.0  # a clock that was set back


def test_about_the_share_is_held_out_and_always_the_same() -> None:
    held_out = [is_held_out(asked(f"question {number}"), 0.25) for number in range(4000)]
    assert sum(held_out) / 4000 == pytest.approx(0.25, abs=0.02)
    # literal: a later night must not move a prompt to the other side
    assert [index for index, held in enumerate(held_out[:22]) if held] == [2, 4, 6, 14, 17, 19, 21]


@given(st.text(), st.floats(0.0, 0.98))
def test_a_larger_share_holds_out_more(text: str, share: float) -> None:
    assert is_held_out(asked(text), share) <= is_held_out(asked(text), share + 0.01)
    assert not is_held_out(asked(text), 0.0)
    assert is_held_out(asked(text), 1.0)


@given(st.text(), st.lists(st.text()), st.text(), st.floats(0, 1))
def test_a_whole_conversation_is_on_one_side(first: str, later: list[str], system: str, share: float) -> None:
    """Later prompts hold the chosen answers; a client may write the date into the system text, or more keys."""
    turns = [{"content": first, "name": "Ann", "role": "user"}]
    for text in later:
        turns = [*turns, {"role": "assistant", "content": text}, *asked(text)]
    for messages in (turns, [{"role": "system", "content": system}, *turns]):
        assert is_held_out(messages, share) == is_held_out(asked(first), share)
        assert opening(messages) == opening(asked(first)) != opening(asked(f"{first}!"))
