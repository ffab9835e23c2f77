"""The alarm on too little disk space, on both sides of its thresholds."""

from pathlib import Path

import pytest

from tasks.monitoring.alarms import bytes_of_a_round, disk_alarms

GB = 10**9


@pytest.mark.parametrize(("room", "severe"), [(8 * GB, None), (8 * GB - 1, False), (4 * GB, False), (4 * GB - 1, True)])
def test_both_sides_of_the_thresholds(room: int, severe: bool | None) -> None:
    found = disk_alarms(room, 2 * GB, 4)
    assert [(alarm.name, alarm.severe, alarm.round) for alarm in found] == (
        [] if severe is None else [("disk_short", severe, 4)]
    )


def test_a_round_writes_as_much_as_the_last_one(tmp_path: Path) -> None:
    checkpoint, state = tmp_path / "cafe42", tmp_path / "round-01"
    checkpoint.mkdir()
    (checkpoint / "model.safetensors").write_bytes(b"x" * 1000)
    assert bytes_of_a_round(checkpoint, state) == 7000  # no state was written yet
    state.mkdir()
    (state / "optimizer.safetensors").write_bytes(b"x" * 500)
    assert bytes_of_a_round(checkpoint, state) == 1500
    assert bytes_of_a_round(tmp_path / "long gone", tmp_path / "round-09") == 0
