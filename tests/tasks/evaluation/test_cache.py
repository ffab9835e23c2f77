"""Exams that were sat are found by all that they depend on, and by nothing less; damaged ones are sat again."""

import importlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from tasks import stage
from tasks.evaluation import cache
from tasks.evaluation.cache import DRAFT, CachedExam, find, keep, key, orphans, terms
from tasks.evaluation.evaluate import exam_problems
from tasks.stage import MANIFEST
from tests.tasks.evaluation.test_metrics import row

PART = ExamPart(benchmark="arithmetic", levels=("1",), problems=3)
EXAM = CachedExam([row("a"), row("b", "wrong")], [row("a", sample=1)], ["c"], 12.5)


def depend(**changes: Any) -> dict[str, str]:
    part = changes.pop("part", PART)
    questions = exam_problems(changes.pop("asked", part), SandboxConfig())
    given: dict[str, Any] = {
        "checkpoint": Path("checkpoints/cafe42"),
        "questions": questions,
        "prompts": [[1, 2, number] for number in range(len(questions))],
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


@pytest.mark.parametrize("where", ["greedy", "sampled"])
def test_what_a_grader_failed_on_is_not_kept(tmp_path: Path, where: str) -> None:
    """Else every later exam would be without a decision."""
    keep(tmp_path, depend(), replace(EXAM, **{where: [row("a"), row("b", "grader_failed")]}))
    assert find(tmp_path, depend()) is None
    assert list(tmp_path.iterdir()) == []
    keep(tmp_path, depend(), EXAM)  # sat again, and graded
    assert find(tmp_path, depend()) == EXAM


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint": Path("checkpoints/c0ffee")},
        {"part": PART.model_copy(update={"problems": 2})},
        {"part": PART.model_copy(update={"samples": 4})},
        {"part": PART.model_copy(update={"samples": 4, "temperature": 0.5})},
        {"asked": PART.model_copy(update={"levels": ("2",)})},  # other problems under the same name
        {"prompts": [[1, 2, 0], [1, 2, 1], [1, 2, 3]]},  # another system prompt, template, or way to render it
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
        {"sandbox": SandboxConfig(workers=1)},
    ],
)
def test_what_no_answer_depends_on_makes_no_other(changes: dict[str, Any]) -> None:
    assert depend(**changes) == depend()


@pytest.mark.parametrize("what", ["device", "grader_version", "asking_version", "_package"])
def test_another_machine_grader_or_engine_makes_another(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = depend()
    monkeypatch.setattr(cache, what, lambda *_: "another")
    assert key(depend()) != key(before)


def test_the_graders_version_is_that_of_their_own_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(source: str) -> str:
        (tmp_path / "gsm8k.py").write_text(source)
        cache.grader_version.cache_clear()
        return cache.grader_version()

    monkeypatch.setattr(cache.rewards, "__path__", [str(tmp_path)])
    assert version("a = 1") == version("a = 1") != version("a = 2")
    cache.grader_version.cache_clear()


OWN = """
from rewards.arithmetic import Arithmetic

class Roman(Arithmetic):
    name = "roman"
"""


def test_a_change_of_an_own_benchmarks_class_makes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    part, file = ExamPart(benchmark="kept_roman:Roman", problems=2), tmp_path / "kept_roman.py"
    file.write_text(OWN)
    importlib.invalidate_caches()
    first = key(depend(part=part))
    assert first == key(depend(part=part))
    file.write_text(f"{OWN}    # judges otherwise\n")
    assert key(depend(part=part)) != first


def test_all_files_that_ask_a_model_are_there() -> None:
    cache.asking_version.cache_clear()
    assert len(cache.asking_version()) == 20


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
    draft, written = tmp_path / f"{DRAFT}x", tmp_path / f"{DRAFT}y"
    for folder in (draft, written):
        folder.mkdir()
    os.utime(draft, (time.time() - 86500, time.time() - 86500))  # of a crash; the other one is being written
    assert list(orphans(tmp_path, {"cafe42", "c0ffee"})) == [(draft.name, draft)]
    assert dict(orphans(tmp_path, {"cafe42"})) == {draft.name: draft, "c0ffee": tmp_path / key(others)}
    _forget(tmp_path / key(depend()))  # whose it was is not known any more
    assert tmp_path / key(depend()) in dict(orphans(tmp_path, {"cafe42", "c0ffee"})).values()


def test_who_keeps_the_same_meanwhile_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A night and an exam outside of it sit the same: the second one's draft finds the first one's in its place."""
    move = cache._move

    def moved_second(draft: Path, place: Path, found_under: dict[str, str]) -> None:
        shutil.copytree(draft, other := draft.with_name(f"{DRAFT}other"))
        move(other, place, found_under)
        move(draft, place, found_under)

    monkeypatch.setattr(cache, "_move", moved_second)
    keep(tmp_path, depend(), EXAM)
    assert find(tmp_path, depend()) == EXAM
    assert [folder.name for folder in tmp_path.iterdir()] == [key(depend())]


def test_what_is_removed_while_it_is_read_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, depend(), EXAM)

    def remove(folder: Path, inputs: dict[str, str]) -> Any:
        artifact = stage.committed(folder, inputs)
        shutil.rmtree(folder)
        return artifact

    monkeypatch.setattr(cache, "committed", remove)
    assert find(tmp_path, depend()) is None
