"""What is printed of pairs of short nights: by hand."""

import json
from pathlib import Path

from benchmarks.curriculum import Run, regret, table
from tasks.rollouts.curriculum import ARMS


def runs(*gains: float) -> list[Run]:
    return [Run(Path(), gain, 500_000) for gain in gains]


def test_the_difference_of_pairs_has_students_interval() -> None:
    lines = table({"even": runs(0.1, 0.1, 0.1), "signal": runs(0.3, 0.2, 0.4)}).splitlines()
    assert lines[2].endswith("| – |")
    assert lines[3].endswith("| +0.200 [-0.048, +0.448] |")  # t = 4.303, s / √3 = 0.0577


def test_regret_is_to_the_level_with_the_most_signal(tmp_path: Path) -> None:
    def night(choice: str, *groups: tuple[str, int, float]) -> list[Run]:
        (tmp_path / choice / "round-01" / "score").mkdir(parents=True)
        arms = {f"arithmetic/{level}/minus": {"drawn": drawn, "signal": signal} for level, drawn, signal in groups}
        (tmp_path / choice / "round-01" / "score" / ARMS).write_text(json.dumps(arms))
        return [Run(tmp_path / choice, 0.1, 500_000)]

    even = night("even", ("1", 3, 0.2), ("2", 1, 0.4), ("5", 4, 0.0))
    lines = regret({"even": even, "signal": night("signal", ("1", 2, 0.1), ("2", 6, 0.3))}).splitlines()
    assert lines[0] == "Signal of a group by level: 1: 0.200, 2: 0.400, 3: 0.000, 4: 0.000, 5: 0.000."
    assert lines[4] == "| even | 0.38, 0.12, 0.00, 0.00, 0.50 | 0.125 | 0.275 |"  # (3 · 0.2 + 0.4) / 8
    assert lines[5] == "| signal | 0.25, 0.75, 0.00, 0.00, 0.00 | 0.250 | 0.150 |"
    assert not regret({"signal": even})
