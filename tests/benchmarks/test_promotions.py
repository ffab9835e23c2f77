"""What the sequential exam promises of nights in a row, in fewer homes than the benchmark's."""

import numpy as np
import pytest

from benchmarks.promotions import ALPHA, chained, of_successors
from tasks.evaluation.sequential import looks, outlook

HOMES = 5000


@pytest.mark.parametrize("kept", [0.5, 0.7])
def test_chains_without_any_gain_keep_to_alpha(kept: float) -> None:
    """The first night is what the exact computation says; successors need the correction, and it is enough."""
    at = looks(850)
    found = chained(HOMES, 4, at, share=0.4, kept=kept, seed=1)
    exact = outlook(at, ALPHA, 0.0, 0.4).promoted
    assert found[0].promoted.mean() == pytest.approx(exact, abs=4 * np.sqrt(exact / HOMES))
    successors = min(night.succeeded.sum() for night in found[1:])
    assert of_successors(found) <= ALPHA + 2 * np.sqrt(ALPHA / successors)
    assert of_successors(chained(HOMES, 4, at, share=0.4, kept=kept, seed=1, corrected=False)) > ALPHA


def test_the_fourth_unproven_candidate_in_a_row_is_not_taken_further() -> None:
    """Where hardly a flip is drawn anew, a home goes on from one candidate for three nights, then from the champion."""
    nights = chained(HOMES, 6, [1000], share=0.1, kept=1.0, seed=2)
    assert not nights[0].succeeded.any()
    assert nights[1].succeeded.mean() == pytest.approx(0.5, abs=0.05)
    always = nights[1].succeeded & nights[2].succeeded & nights[3].succeeded
    assert always.any()
    assert not nights[4].succeeded[always].any()
