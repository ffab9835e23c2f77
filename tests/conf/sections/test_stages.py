"""The order of a night: what `stages` means, and what it may not say."""

import pytest

from conf.sections.stages import steps


def test_rounds_are_numbered_on_and_what_comes_again_has_a_place_of_its_own() -> None:
    order = steps(["distill", {"grpo": 2}, "self_distill", "distill", {"self_play": 1}, "distill", {"grpo": 2}], 99)
    assert [(step.kind, step.path, list(step.rounds), step.is_block) for step in order] == [
        ("distill", "distill", [], False),
        ("grpo", "merge", [1, 2], True),
        ("self_distill", "self_distill", [], False),
        ("distill", "distill-2", [], False),
        ("self_play", "merge-2", [3], True),
        ("distill", "distill-3", [], False),
        ("grpo", "merge-3", [4, 5], True),
    ]
    assert [step.rounds.start for step in order] == [1, 1, 3, 3, 3, 4, 4]  # of a lesson: the round after it


@pytest.mark.parametrize(
    ("stages", "rounds", "shares"),
    [
        (["grpo"], 10, [10]),
        (["grpo", "distill", "grpo"], 10, [5, 0, 5]),
        (["grpo", "grpo", "grpo"], 11, [4, 4, 3]),
        (["grpo", "grpo"], 1, [1, 0]),
        ([{"grpo": 4}, "grpo", {"self_play": 2}], 10, [4, 10, 2]),  # a number takes nothing from the others
        (["distill"], 10, [0]),
    ],
)
def test_rounds_without_a_number_are_evenly_divided(stages: list, rounds: int, shares: list[int]) -> None:
    assert [len(step.rounds) for step in steps(stages, rounds)] == shares
