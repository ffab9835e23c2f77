"""The guard on language: two checkpoints on the same passages."""

import json
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from tasks.evaluation.english import PASSAGES, judge_english, mean_nats
from tasks.stage import Artifact


def exam(folder: Path, *nats: float) -> Artifact:
    folder.mkdir()
    (folder / "english.json").write_text(json.dumps({"nats": nats}))
    return Artifact(folder=folder, digest=folder.name)


BEFORE, AFTER = (3.0, 3.5, 2.5, 4.0), (3.1, 3.5, 2.7, 4.1)


@pytest.mark.parametrize(("margin", "passes"), [(0.25, True), (0.15, False)])
def test_no_promotion_where_the_upper_bound_passes_the_margin(tmp_path: Path, margin: float, passes: bool) -> None:
    pair = exam(tmp_path / "before", *BEFORE), exam(tmp_path / "after", *AFTER)
    end = "." if passes else ": not passed."
    high = ttest_rel(AFTER, BEFORE).confidence_interval(0.90).high
    bounds = f"(+0.10, upper bound +{high:.2f}; allowed +{margin:.2f})"
    sentence = f"Guard English prose: 3.25 → 3.35 nats a token {bounds}{end}"
    assert judge_english(*pair, margin) == (passes, sentence)
    assert mean_nats(tmp_path / "before") == 3.25


def test_the_passages_are_prose_of_their_own() -> None:
    passages = PASSAGES.read_text(encoding="utf-8").splitlines()
    assert len(passages) == len({*passages}) == 48
    assert all(30 <= len(passage.split()) <= 60 for passage in passages)
