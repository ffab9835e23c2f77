"""The vault: problems that decide nothing, answered by the first student once and by whoever serves each night."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from conf.load import STARTER, load_night
from conf.storage.home import Home, InputError
from flows.evaluation.vault import Vault
from flows.run.context import Night
from flows.run.preflight import check_vault
from models.checkpoint import is_whole, keep, write_lineage
from tasks.evaluation.evaluate import exam_problems
from tasks.registry.mlflow_registry import Version
from tasks.tables import EVALUATIONS, read_table
from tests.chaos.school import DATE, open_school
from tests.tasks.evaluation.test_evaluate import TableEngine, gsm8k
from tests.tasks.tiny_student import write_student

RIGHT = {f"Number {number}?": f"#### {number}" for number in range(10)}
WRONG = {f"Number {number}?": "#### 99" for number in range(10)}


class School:
    """A home with two students, and nights whose engine answers by heart."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        root.mkdir()
        rows = [(f"Number {number}?", f"#### {number}") for number in range(10)]
        self.source = gsm8k(root / "gsm8k", rows)
        self.first, self.second = self.make("first"), self.make("second")

    def make(self, weights: str) -> Path:
        draft = write_student(self.home.checkpoints / "draft")
        (draft / "model.safetensors").write_text(weights)
        write_lineage(draft, None)
        return keep(draft, self.home.checkpoints)

    def night(self, date: str, answers: dict[str, str], vault: int | None = 6) -> tuple[Night, TableEngine]:
        target = f"exam.target={{benchmark: gsm8k, source: {self.source}, problems: 4}}"
        settings = [target, "exam.guards=[]", f"exam.vault={vault or 'null'}", "engine.max_model_len=4096"]
        night = Night(self.home, date, load_night(STARTER, settings))
        night.engine.end()
        night.trainer.end()
        night.engine = engine = TableEngine(self.first, answers)  # pyright: ignore
        return night, engine

    def registered(self) -> list[Version]:
        """Under numbers as the registry gives them; the weights of one are gone."""
        digests = ("0" * 20, self.first.name, self.second.name)
        return [
            Version(str(n), digest, "", "2026-11-20", "champion", 0.5, True, ()) for n, digest in enumerate(digests, 1)
        ]


@pytest.fixture
def school(tmp_path: Path) -> School:
    return School(tmp_path / "school")


@pytest.mark.usefixtures("prefect_server")
def test_the_first_student_answers_once_for_all_nights_and_whoever_serves_is_held_against_it(school: School) -> None:
    night, engine = school.night("2026-11-20", RIGHT)
    vault = Vault(night, [], champion=school.first)
    vault.begin()
    decides = [problem.question for _, problem in exam_problems(night.config.exam.target, night.config.sandbox)]
    told = {next(f"Number {n}?" for n in range(10) if f"Number {n}?" in asked) for asked in engine.asked}
    assert told == {f"Number {number}?" for number in range(10)} - {*decides}
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
        "Who serves is worse than the first student on problems that never decided: −1.00 on gsm8k (95 % interval "
        f"−1.00 to −1.00, 6 problems). Go back: `nightschool rollback --config {config}`, or to the first student with "
        f"`nightschool promote 2 --config {config}`."
    )
    assert vault.alarms(serving=school.second) == [alarm]
    assert engine.calls == 1


@pytest.mark.usefixtures("prefect_server")
def test_who_is_as_good_as_the_first_student_raises_no_alarm(school: School) -> None:
    night, _ = school.night("2026-11-20", RIGHT)
    vault = Vault(night, school.registered(), champion=school.first)
    vault.begin()
    assert vault.alarms(serving=school.second) == []


def test_without_a_vault_nobody_is_asked(school: School) -> None:
    night, engine = school.night("2026-11-20", RIGHT, vault=None)
    vault = Vault(night, school.registered(), champion=school.second)
    vault.begin()
    assert vault.alarms(serving=school.second) == []
    assert engine.calls == 0
    assert night.config.exam.vault_parts == ()


@pytest.fixture
def complaint(school: School) -> Callable[[int, int], str]:
    """What the preflight says of an exam of so many problems, and a vault of so many."""

    def said(problems: int, vault: int) -> str:
        target = f"exam.target={{benchmark: gsm8k, source: {school.source}, problems: {problems}}}"
        settings = [target, "exam.guards=[]", f"exam.vault={vault}"]
        try:
            check_vault(load_night(STARTER, settings))
        except InputError as error:
            return str(error)
        return ""

    return said


def test_an_exam_that_leaves_nothing_for_the_vault_is_refused(complaint: Callable[[int, int], str]) -> None:
    assert complaint(4, 6) == ""
    assert complaint(4, 400) == ""  # at most so many
    assert complaint(10, 6) == (
        "exam.vault: gsm8k has no problems but those that decide; leave it some: "
        "--set exam.target.problems=… (less than 10)"
    )


def test_no_problem_of_the_vault_decides(school: School) -> None:
    """Two parts of one benchmark: what follows after the one's problems may be the other's."""
    settings = ['exam.target={benchmark: arithmetic, levels: ["1"], problems: 100}', "exam.vault=50"]
    guard = 'exam.guards=[{benchmark: arithmetic, levels: ["1", "2"], problems: 150}]'
    with pytest.raises(
        InputError, match="exam.vault: .*: some problems would be in the vault and in a part that decides"
    ):
        check_vault(load_night(STARTER, [*settings, guard]))


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
        assert is_whole(home.checkpoints / digest)
