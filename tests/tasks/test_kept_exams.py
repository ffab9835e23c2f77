"""Exams that were sat are found by all that they depend on, and by nothing less; damaged ones are sat again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.benchmark import ExamPart
from conf.schema import EngineConfig, SandboxConfig, StudentConfig
from tasks import kept_exams
from tasks.evaluate import exam_problems
from tasks.kept_exams import DRAFT, KeptExam, find, keep, key, orphans, terms
from tasks.stage import MANIFEST
from tests.tasks.test_exam_figures import row

PART = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
EXAM = KeptExam([row("a"), row("b", "wrong")], [row("a", sample=1)], ["c"], 12.5)


def depend(**changes: Any) -> dict[str, str]:
    part = changes.pop("part", PART)
    given: dict[str, Any] = {
        "checkpoint": Path("checkpoints/cafe42"),
        "questions": exam_problems(changes.pop("asked", part), SandboxConfig()),
        "student": StudentConfig(),
        "config": EngineConfig(),
        "sandbox": SandboxConfig(),
        "max_completion_tokens": 64,
    }
    return terms(part=part, **given | changes)


def test_what_was_kept_is_found_and_the_same(tmp_path: Path) -> None:
    assert find(tmp_path / "exams", depend()) is None
    keep(tmp_path / "exams", depend(), EXAM)
    assert find(tmp_path / "exams", depend()) == EXAM
    keep(tmp_path / "exams", depend(), EXAM)  # somebody else sat it meanwhile
    assert [folder.name for folder in (tmp_path / "exams").iterdir()] == [key(depend())]


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint": Path("checkpoints/c0ffee")},
        {"part": PART.model_copy(update={"problems": 2})},
        {"part": PART.model_copy(update={"samples": 4})},
        {"part": PART.model_copy(update={"samples": 4, "temperature": 0.5})},
        {"asked": PART.model_copy(update={"levels": ("2",)})},  # other problems under the same name
        {"student": StudentConfig(system="Be brief.")},
        {"student": StudentConfig(template_arguments={"enable_thinking": False})},
        {"config": EngineConfig(max_model_len=300)},
        {"sandbox": SandboxConfig(seconds=9.0)},
        {"max_completion_tokens": 65},
    ],
)
def test_every_setting_makes_another_exam(changes: dict[str, Any]) -> None:
    assert key(depend(**changes)) != key(depend())
    assert key(depend(**changes)) == key(depend(**changes))


def test_more_samples_are_another_exam() -> None:
    four, five = (depend(part=PART.model_copy(update={"samples": number})) for number in (4, 5))
    assert key(four) != key(five)


@pytest.mark.parametrize(
    "changes",
    [
        {"part": PART.model_copy(update={"margin": 0.2})},
        {"student": StudentConfig(source="somewhere/else", trust_remote_code=True)},  # the checkpoint is what counts
        {"sandbox": SandboxConfig(workers=1)},
    ],
)
def test_what_no_answer_depends_on_makes_no_other(changes: dict[str, Any]) -> None:
    assert depend(**changes) == depend()


@pytest.mark.parametrize("what", ["device", "grader_version", "_package"])
def test_another_machine_grader_or_engine_makes_another(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = depend()
    monkeypatch.setattr(kept_exams, what, lambda *_: "another")
    assert key(depend()) != key(before)


def test_the_graders_version_is_that_of_their_own_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(source: str) -> str:
        (tmp_path / "gsm8k.py").write_text(source)
        kept_exams.grader_version.cache_clear()
        return kept_exams.grader_version()

    monkeypatch.setattr(kept_exams.rewards, "__path__", [str(tmp_path)])
    assert version("a = 1") == version("a = 1") != version("a = 2")
    kept_exams.grader_version.cache_clear()


def _cut(folder: Path) -> None:
    (folder / "greedy.parquet").write_bytes((folder / "greedy.parquet").read_bytes()[:-9])


def _forget(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def _lose(folder: Path) -> None:
    (folder / "sampled.parquet").unlink()


def _swap(folder: Path) -> None:
    """What another checkpoint answered, under this one's key."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["inputs"]["checkpoint"] = "c0ffee"
    (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize("harm", [_cut, _forget, _lose, _swap])
def test_what_was_damaged_is_not_found_and_is_replaced(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    keep(tmp_path, depend(), EXAM)
    harm(tmp_path / key(depend()))
    assert find(tmp_path, depend()) is None
    keep(tmp_path, depend(), EXAM)
    assert find(tmp_path, depend()) == EXAM


def test_orphans_are_those_of_other_checkpoints_and_drafts(tmp_path: Path) -> None:
    assert list(orphans(tmp_path / "none", set())) == []
    others = depend(checkpoint=Path("c0ffee"))
    keep(tmp_path, depend(), EXAM)
    keep(tmp_path, others, EXAM)
    draft = tmp_path / f"{DRAFT}x"
    draft.mkdir()
    assert list(orphans(tmp_path, {"cafe42", "c0ffee"})) == [(draft.name, draft)]
    assert dict(orphans(tmp_path, {"cafe42"})) == {draft.name: draft, "c0ffee": tmp_path / key(others)}
    _forget(tmp_path / key(depend()))  # whose it was is not known any more
    assert tmp_path / key(depend()) in dict(orphans(tmp_path, {"cafe42", "c0ffee"})).values()
