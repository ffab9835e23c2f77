"""What the update's benchmark makes of its measurements."""

from typing import Any

import pytest

from benchmarks.inputs.workloads import advantages, grown, workload
from benchmarks.update import GROWTH, WORKLOADS, _slope, fastest


def measured(weights: str, batch: int, seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "peak_gb": 1.0, "setting": {"weights": weights, "batch": batch}}


def test_the_fastest_setting_of_a_precision_counts() -> None:
    tried = [measured("float32", 8, 3.0), measured("float32", 32, 2.0), measured("bfloat16", 8, 1.0)]
    assert fastest(tried, "float32")["setting"]["batch"] == 32
    assert fastest(tried, "bfloat16")["seconds"] == 1.0


@pytest.mark.parametrize(("power", "factor"), [(1.0, 3.0), (0.0, 2.0), (2.0, 0.1)])
def test_the_growth_exponent_of_a_power_law(power: float, factor: float) -> None:
    assert _slope(GROWTH, [factor * x**power for x in GROWTH]) == pytest.approx(power)


def test_workloads_have_the_stated_lengths() -> None:
    shape = {name: [(len(r.prompt_token_ids), len(r.token_ids)) for r in workload(name)] for name in WORKLOADS}
    assert set(shape["medium"]) == {(106, 128)}
    assert len(shape["medium"]) == 4 * 8
    assert set(shape["long prompt"]) == {(400, 64)}
    assert set(shape["long completion"]) == {(106, 512)}
    assert len(shape["short"]) == 24 * 8
    assert {prompt for prompt, _ in shape["short"]} == {55}
    assert max(length for _, length in shape["short"]) == 48
    assert 23 < sum(length for _, length in shape["short"]) / 192 < 27
    assert [len(grown(groups)) for groups in GROWTH] == [32, 64, 128, 256]
    assert sum(advantages(workload("medium"))) == 0.0
