from benchmarks.teach import looked_at


def test_a_look_after_every_pick_at_most() -> None:
    assert [*looked_at(50, 3)] == [0, 25, 50]
    assert [*looked_at(1, 3)] == [0, 1]
    assert [*looked_at(1, 0)] == []
