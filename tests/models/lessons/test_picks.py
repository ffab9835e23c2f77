"""Which picks count how much, and which are held out: by hand and as laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.lessons.preference_data import Pick, age_weight, is_held_out, opening


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_half_of_the_weight_goes_every_half_life() -> None:
    assert [age_weight(nights, 14.0) for nights in (0, 14, 28)] == [1.0, 0.5, 0.25]
    assert age_weight(7, 14.0) == pytest.approx(0.7071, abs=1e-4)
    assert age_weight(-3, 14.0) == 1.0  # a clock that was set back


def test_about_the_share_is_held_out_and_always_the_same() -> None:
    sides = [is_held_out(asked(f"question {number}"), 0.25) for number in range(4000)]
    assert sum(sides) / 4000 == pytest.approx(0.25, abs=0.02)
    assert [is_held_out(asked(f"question {number}"), 0.25) for number in range(8)] == sides[:8]
    # written down: nights to come must not move a prompt to the other side
    assert [place for place, held in enumerate(sides[:22]) if held] == [2, 4, 6, 14, 17, 19, 21]


@given(st.text(), st.floats(0.01, 0.98))
def test_who_is_held_out_stays_so_with_a_larger_share(text: str, share: float) -> None:
    if is_held_out(asked(text), share):
        assert is_held_out(asked(text), share + 0.01)


def test_other_keys_of_a_message_and_their_order_do_not_matter() -> None:
    for text in map(str, range(50)):
        turned = [{"content": text, "name": "Ann", "role": "user"}]
        assert is_held_out(turned, 0.5) == is_held_out(asked(text), 0.5)


@given(st.text(), st.lists(st.text()), st.floats(0, 1))
def test_a_whole_conversation_is_on_one_side(first: str, later: list[str], share: float) -> None:
    """A later prompt holds the answer that was picked before."""
    turns = asked(first)
    for text in later:
        turns = [*turns, {"role": "assistant", "content": text}, *asked(text)]
        assert is_held_out(turns, share) == is_held_out(asked(first), share)


@given(st.text(), st.text(), st.floats(0, 1))
def test_the_same_question_is_on_one_side_whatever_the_system_text(text: str, system: str, share: float) -> None:
    """A client may write the date into it."""
    told = [{"role": "system", "content": system}, *asked(text)]
    assert is_held_out(told, share) == is_held_out(asked(text), share)
    assert opening(told) == opening(asked(text)) != opening(asked(f"{text}!"))


def test_without_a_turn_of_the_owner_all_of_it_opens_a_conversation() -> None:
    one, other = ([{"role": "assistant", "content": text}] for text in ("Hi", "Ho"))
    assert opening(one) != opening(other)


def test_of_nobody_nothing_is_held_out() -> None:
    assert not any(is_held_out(asked(text), 0.0) for text in map(str, range(100)))
    assert all(is_held_out(asked(text), 1.0) for text in map(str, range(100)))


def test_lengths() -> None:
    assert Pick((1,), ((2, 1), (2, 3, 1)), 0).lengths == [2, 3]
