import html
import json
from dataclasses import asdict
from pathlib import Path

from models.lessons.preference_data import Pick
from models.lessons.ranking import exact, rank
from tasks.report.page import render
from tasks.report.sections import reward_model_sentences
from tasks.stage import commit
from tests.tasks.night_folder import write_night

# Of each pick the shortest of three answers was picked, but for the last one's, which is the longest.
PICKS = [*[Pick((1,), ((2,), (3, 3), (4, 4, 4)), 0)] * 7, Pick((1,), ((2,), (3, 3), (4, 4, 4)), 2)]


def fitted(*, serves: bool, curve: tuple[int, ...] = ()) -> dict[str, object]:
    """What the stage says of rewards that prefer the shortest."""
    ranking = rank([[1.0, 0.0, -1.0]] * len(PICKS), PICKS)
    steps = [{"picks": picks} | asdict(exact(picks / 10, len(PICKS))) for picks in (*curve, 30)]
    said = {"serves": serves, "reason": None if serves else "that may be chance (33%)", "picks": 38, "held_out": 8}
    return said | asdict(ranking) | {"learning_curve": steps}


def test_one_that_serves_is_told_with_its_interval_and_what_it_is_made_of() -> None:
    served, length, sure, learnt = reward_model_sentences(fitted(serves=True, curve=(10, 20)))
    assert served == (
        "A reward model served: of 8 held-out picks (of 38) it found 88% (95 % interval 47% to 100%; chance is 33%)."
    )
    assert length == (
        "Of the held-out picks it puts the longest answer first in 0%, the owner in 12%; "
        "the shortest is the owner's in 88%."
    )
    # softmax of (1, 0, −1) at its top: 66.5 %, and right in 87.5 %
    assert sure == "Of its first choice it is 67% sure on average; expected calibration error 21%."
    assert learnt == "How it learns: 12% after 10 picks, 25% after 20 picks, 38% after 30 picks."


def test_one_that_was_refused_is_told_with_the_reason_and_the_same_figures() -> None:
    refused, *made_of = reward_model_sentences(fitted(serves=False))
    assert refused == "No reward model served (38 picks): that may be chance (33%)."
    assert len(made_of) == 2  # of one fit there is no curve


def test_none_was_fitted() -> None:
    outcome = {"serves": False, "reason": "with fewer than 30 usable picks none is fitted", "picks": 4, "held_out": 1}
    told = "No reward model served (4 picks): with fewer than 30 usable picks none is fitted."
    assert reward_model_sentences(outcome) == [told]
    assert reward_model_sentences(None) == []


def test_they_stand_in_the_report(tmp_path: Path) -> None:
    summary = write_night(tmp_path)
    folder, outcome = tmp_path / "fit_reward_model", fitted(serves=True)
    (folder / "outcome.json").write_text(json.dumps(outcome))
    commit(folder, "fit_reward_model", {}, 0.1)
    assert " ".join(reward_model_sentences(outcome)) in html.unescape(render(tmp_path, summary))
