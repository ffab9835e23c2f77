import json
from pathlib import Path

import pytest

from benchmarks.night import profile
from benchmarks.nights.timed import DATE, Moment, overhead_share, parts, rounds_of

# Two rounds, the second with a refill; in between 0.5 s that belong to no stage.
TOLD = [
    ("distill", 0.0, 3.0),
    ("round 1 · select prompts", 10.0, 10.2),
    ("round 1 · sample", 10.2, 14.0),
    ("round 1 · score", 14.0, 14.1),
    ("round 1 · credit", 14.1, 14.2),
    ("round 1 · update", 14.5, 19.5),
    ("round 2 · select prompts", 20.0, 20.2),
    ("round 2 · sample", 20.2, 23.2),
    ("round 2 · score", 23.2, 23.3),
    ("round 2 · credit", 23.3, 23.4),
    ("round 2 · refill 1 · select prompts", 23.4, 23.5),
    ("round 2 · refill 1 · sample", 23.5, 24.5),
    ("round 2 · refill 1 · score", 24.5, 24.6),
    ("round 2 · refill 1 · credit", 24.6, 24.7),
    ("round 2 · update", 25.0, 29.0),
    ("evaluate · champion", 32.0, 33.0),
]
MOMENTS = [Moment(at, stage, done) for stage, *ends in TOLD for at, done in zip(ends, (False, True), strict=True)]


def test_rounds_from_moments() -> None:
    first, second = rounds_of(MOMENTS)
    assert (first.number, first.begin, first.updated, first.end) == (1, 10.0, 19.5, 20.0)
    assert (second.number, second.begin, second.updated, second.end) == (2, 20.0, 29.0, 32.0)
    assert second.seconds == 12.0
    assert second.stages == pytest.approx(
        {"select prompts": 0.3, "sample": 4.0, "score": 0.2, "credit": 0.2, "update": 4.0}
    )


def test_a_round_under_way_is_not_listed() -> None:
    """Nor is one that is done, as long as nothing has begun after it: its end is not known."""
    assert [one.number for one in rounds_of(MOMENTS[:-2])] == [1]
    assert [one.number for one in rounds_of(MOMENTS[:13])] == [1]
    assert rounds_of(MOMENTS[:8]) == []


WITHIN = {"select_prompts": 0.2, "sample": 3.8, "sync": 0.4, "generate": 3.0, "score": 0.1, "credit": 0.1}


def test_the_parts_of_a_round() -> None:
    second = rounds_of(MOMENTS)[1]
    found = parts(second, {"seconds_update": 3.5}, WITHIN | {"checkpoint": 6.0})
    assert found == pytest.approx(
        {
            "select prompts": 0.2,
            "sync of the weights": 0.4,
            "generate": 3.0,
            "rollouts to their table": 0.4,
            "score": 0.1,
            "credit": 0.1,
            "update": 3.5,
            "new weights to the disk": 0.5,
            "Prefect and manifests": 0.5,
            "waiting for the state, the rest": 3.3,
        }
    )
    assert sum(found.values()) == pytest.approx(second.seconds)
    assert overhead_share(found) == pytest.approx(1 - 6.6 / 12)


def write_night(home: Path, rounds: int, useful: dict[int, float]) -> Path:
    """A night's moments, manifests and metrics: a round takes 10 s and 1 s more for each after the first."""
    folder, at = home / "nights" / DATE, 0.0
    told = []
    for number in range(1, rounds + 1):
        last = 6.0 + number - 1
        for stage, seconds in (("sample", 3.0), ("score", 0.5), ("credit", 0.5), ("update", last)):
            label = f"round {number} · {stage}"
            told += [{"at": at, "stage": label, "done": False}, {"at": at + seconds, "stage": label, "done": True}]
            at += seconds
        place = folder / f"round-{number:02d}"
        for stage, seconds in (("select_prompts", 0.0), ("sample", 2.9), ("score", 0.4), ("credit", 0.4)):
            own = {"sync": 0.1, "generate": 2.5} if stage == "sample" else {}
            write_manifest(place / stage, stage, seconds, own)
        write_manifest(place / "checkpoint", "checkpoint", 5.0, {})
        metrics = {"useful_groups": useful.get(number, 4.0), "seconds_update": last - 1, "seconds_checkpoint": 5.0}
        (place / "checkpoint" / "metrics.json").write_text(json.dumps(metrics))
    told.append({"at": at, "stage": "decide", "done": False})
    (home / "moments.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    return folder


def write_manifest(folder: Path, stage: str, seconds: float, own: dict[str, float]) -> None:
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"stage": stage, "seconds": seconds, "figures": own}))


def test_a_profile_leaves_out_the_ends_and_rounds_with_groups_that_were_not_useful(tmp_path: Path) -> None:
    folder = write_night(tmp_path, 5, {2: 3.0, 3: 3.0})
    found = profile(folder, 5, useful=4)
    assert (found["rounds"], found["rounds_left_out"]) == (1, 2)
    assert found["seconds"] == pytest.approx(13.0)
    with pytest.raises(RuntimeError, match="no round"):
        profile(folder, 5, useful=5)
