from benchmarks.talk import by_taste


def test_days_of_different_length_are_not_mixed() -> None:
    arms = {("shipped", 10): 0.5, ("frozen", 10): 0.25, ("shipped", 99): 1.0}  # without a like
    runs = [
        {"arm": arm, "turns": turns, "seed": 1, "before": 0, "after": after} for (arm, turns), after in arms.items()
    ]
    assert by_taste(runs) == [0.25]
