"""The vault: problems that decide nothing, answered once by the first student and each night by the serving model."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from flows.evaluation.vault import Vault
from flows.run.preflight import check_vault
from models.checkpoint import is_intact
from tasks.evaluation.evaluate import exam_problems
from tasks.tables import EVALUATIONS, read_table
from tests.chaos.school import DATE, open_school
from tests.flows.evaluation.vault_school import RIGHT, WRONG, School


@pytest.fixture
def school(tmp_path: Path) -> School:
    return School(tmp_path / "school")


@pytest.mark.usefixtures("prefect_server")
def test_the_serving_model_is_compared_with_the_first_student_which_answers_once(school: School) -> None:
    night, engine = school.night("2026-11-20", RIGHT)
    vault = Vault(night, [], champion=school.first)
    vault.begin()
    decides = [problem.question for problem in exam_problems(night.config.exam.target, night.config.sandbox)]
    asked = {next(f"Number {n}?" for n in range(10) if f"Number {n}?" in prompt) for prompt in engine.asked}
    assert asked == {f"Number {number}?" for number in range(10)} - {*decides}
    assert (len(decides), len(engine.asked)) == (4, 6)
    assert vault.alarms(serving=school.first) == []
    assert engine.calls == 1
    later, engine = school.night("2026-11-21", WRONG)
    vault = Vault(later, school.registered(), champion=school.second)
    assert vault.ancestor == school.first
    vault.begin()
    assert engine.calls == 0
    (alarm,) = vault.alarms(serving=school.second)
    assert engine.calls == 1
    config = later.folder / "config.yaml"
    assert not alarm.severe
    assert alarm.sentence == (
        "The serving model is worse than the first student on the vault: −1.00 on gsm8k (95 % interval −1.00 to −1.00, "
        f"6 problems). Go back: `nightschool rollback --config {config}`, or to the first student with "
        f"`nightschool promote 2 --config {config}`."
    )
    assert vault.alarms(serving=school.second) == [alarm]
    assert engine.calls == 1


@pytest.mark.usefixtures("prefect_server")
def test_a_model_as_good_as_the_first_student_raises_no_alarm(school: School) -> None:
    night, _ = school.night("2026-11-20", RIGHT)
    vault = Vault(night, school.registered(), champion=school.first)
    vault.begin()
    assert vault.alarms(serving=school.second) == []


def test_without_a_vault_nothing_is_asked(school: School) -> None:
    night, engine = school.night("2026-11-20", RIGHT, vault=None)
    vault = Vault(night, school.registered(), champion=school.second)
    vault.begin()
    assert vault.alarms(serving=school.second) == []
    assert engine.calls == 0
    assert night.config.exam.vault_parts == ()


def test_an_exam_that_leaves_the_vault_no_problems_is_refused(school: School) -> None:
    def check(problems: int, vault: int) -> None:
        target = f"exam.target={{benchmark: gsm8k, source: {school.source}, problems: {problems}}}"
        check_vault(load_night(STARTER, [target, "exam.guards=[]", f"exam.vault={vault}"]))

    check(4, 6)
    check(4, 400)  # at most so many
    with pytest.raises(InputError, match="exam.vault: gsm8k has no problems but those that decide; leave it some: "):
        check(10, 6)


def test_no_problem_of_the_vault_decides() -> None:
    """Two parts of one benchmark: what follows after the one's problems may be the other's."""
    settings = ['exam.target={benchmark: arithmetic, levels: ["1"], problems: 100}', "exam.vault=50"]
    guard = 'exam.guards=[{benchmark: arithmetic, levels: ["1", "2"], problems: 150}]'
    with pytest.raises(InputError, match="some problems would be in the vault and in a part that decides"):
        check_vault(load_night(STARTER, [*settings, guard]))


@pytest.mark.full
def test_a_whole_night_with_a_vault(tmp_path: Path, prefect_server: Path) -> None:
    """The real command with a tiny student that samples for itself: promoted, with cards, held against the first."""
    school = open_school(tmp_path / "tiny", get_current_settings().api.url)
    school = replace(school, settings=(*school.settings, "exam.target.problems=10", "exam.vault=6"))
    home = school.home("home")
    assert school.start(home) == 0, (school.watch(home) / "said.log").read_text()[-3000:]
    night = home.night(DATE)
    summary = json.loads((night / "summary.json").read_text())
    assert summary["decision"] == "promoted"
    assert summary["false_promotions_a_year"] == pytest.approx(365 * 0.025)
    (comparison,) = summary["vault"].values()
    assert (comparison["n"], comparison["high"] >= 0, summary["alarms"]) == (6, True, [])
    assert [comparison["before_digest"], comparison["after_digest"]] == [
        summary["digests"][who] for who in ("champion", "candidate")
    ]
    places = ("evaluate/candidate", "vault/serving")
    kept = [read_table(night / place / "evaluations.parquet", EVALUATIONS) for place in places]
    assert set(kept[0].problem_id).isdisjoint(kept[1].problem_id)
    for digest in summary["digests"].values():
        assert "## Limits" in (home.checkpoints / digest / "README.md").read_text()
        assert is_intact(home.checkpoints / digest)
