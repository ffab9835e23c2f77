"""Is there room for another round?"""

from pathlib import Path

import pytest

from tasks.alarms import Alarm
from tasks.disk_room import bytes_of_a_round, disk_alarms

GB = 10**9


@pytest.mark.parametrize(("free", "severe"), [(6 * GB, None), (6 * GB - 1, False), (2 * GB, False), (2 * GB - 1, True)])
def test_both_sides_of_the_thresholds(free: int, severe: bool | None) -> None:
    found = disk_alarms(free, 2 * GB, 4)
    assert [(alarm.name, alarm.severe, alarm.round) for alarm in found] == (
        [] if severe is None else [("disk_short", severe, 4)]
    )


def test_what_is_said() -> None:
    said = "The disk runs short: after round 4 1.5 GB are free, and a round writes 2.0 GB."
    assert disk_alarms(3 * GB // 2, 2 * GB, 4) == [Alarm("disk_short", True, said, 4)]


def test_a_round_writes_as_much_as_the_last_one(tmp_path: Path) -> None:
    checkpoint, state = tmp_path / "cafe42", tmp_path / "round-01"
    checkpoint.mkdir()
    (checkpoint / "model.safetensors").write_bytes(b"x" * 1000)
    assert bytes_of_a_round(checkpoint, state) == 7000  # no state was written yet
    state.mkdir()
    (state / "optimizer.safetensors").write_bytes(b"x" * 500)
    assert bytes_of_a_round(checkpoint, state) == 1500
    assert bytes_of_a_round(tmp_path / "long gone", tmp_path / "round-09") == 0
