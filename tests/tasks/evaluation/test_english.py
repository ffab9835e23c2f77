"""The guard on language: two checkpoints on the same passages."""

import json
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from tasks.evaluation.english import PASSAGES, compare_english, mean_nats, with_english
from tasks.evaluation.judgement import Decision
from tasks.stage import Artifact


def exam(folder: Path, *nats: float) -> Artifact:
    folder.mkdir()
    (folder / "english.json").write_text(json.dumps({"nats": nats}))
    return Artifact(folder=folder, digest=folder.name)


def test_the_comparison_is_the_paired_t_interval(tmp_path: Path) -> None:
    before, after = (3.0, 3.5, 2.5, 4.0), (3.1, 3.5, 2.7, 4.1)
    compared = compare_english(exam(tmp_path / "before", *before), exam(tmp_path / "after", *after))
    assert (compared.passages, compared.before, compared.after) == (4, 3.25, pytest.approx(3.35))
    assert mean_nats(tmp_path / "before") == 3.25
    assert compared.difference == pytest.approx(0.1)
    assert compared.high == pytest.approx(ttest_rel(after, before).confidence_interval(0.90).high)


@pytest.mark.parametrize(("margin", "passes"), [(0.25, True), (0.15, False)])
def test_no_promotion_where_the_upper_bound_passes_the_margin(tmp_path: Path, margin: float, passes: bool) -> None:
    pair = exam(tmp_path / "before", 3.0, 3.5, 2.5, 4.0), exam(tmp_path / "after", 3.1, 3.5, 2.7, 4.1)
    decision = with_english(Decision(True, ("Better.",)), compare_english(*pair), margin)
    assert decision.promote is passes
    end = "." if passes else ": not passed."
    bounds = f"(+0.10, upper bound +0.20; allowed +{margin:.2f})"
    assert decision.reasons == ("Better.", f"Guard English prose: 3.25 → 3.35 nats a token {bounds}{end}")
    assert not with_english(Decision(False, ()), compare_english(*pair), margin).promote


def test_the_passages_are_prose_of_their_own() -> None:
    passages = PASSAGES.read_text(encoding="utf-8").splitlines()
    assert len(passages) == len({*passages}) == 48
    assert all(30 <= len(passage.split()) <= 60 for passage in passages)
