"""Where a night's time goes, by hand."""

from benchmarks.nights.fixed import Fixed, by_stage, page
from benchmarks.nights.timed import Moment


def test_stages_and_what_lies_between_them_add_up_to_the_command() -> None:
    found = by_stage(
        [
            *(Moment(10.0, "enroll", False), Moment(14.0, "enroll", True)),
            *(Moment(15.0, "round 1 · sample", False), Moment(21.0, "round 1 · sample", True)),
            *(Moment(21.5, "round 1 · update", False), Moment(30.5, "round 1 · update", True)),
        ],
        began=2.0,
        ended=32.0,
    )
    assert found == {
        "before the first stage": 8.0,
        "enroll": 4.0,
        "between the stages": 1.5,
        "round 1": 15.0,
        "after the last stage": 1.5,
    }
    assert "| **together** | **18.0** |" in page(Fixed(found, work=12.0, processes={"the command": 9.0}))
