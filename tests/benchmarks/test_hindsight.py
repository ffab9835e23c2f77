import json

from benchmarks.hindsight import compared, table


def test_nothing_would_be_detected_where_no_answer_differs() -> None:
    row = {"wish": "Shorter, please.", **compared("short", [["Yes."]], [["No."]])}
    assert json.loads(json.dumps(row, allow_nan=False))["detectable"] is None
    assert table([row]).endswith("| – |")
