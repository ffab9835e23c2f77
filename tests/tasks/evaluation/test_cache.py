"""Cached exams are found by all that they depend on, and by nothing less; damaged ones are written again."""

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
from tasks.evaluation.cache import DRAFT, key, load_exam, orphans, save_exam

from conf.schema import EngineConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from tasks.evaluation import cache
from tasks.stage import MANIFEST
from tests.tasks.doubles.exam import EXAM, SUMS, inputs_of


def test_a_cached_exam_is_found_and_the_same(tmp_path: Path) -> None:
    inputs = inputs_of()
    assert load_exam(tmp_path / "exams", inputs) is None
    save_exam(tmp_path / "exams", inputs, EXAM)
    assert load_exam(tmp_path / "exams", inputs) == EXAM
    save_exam(tmp_path / "exams", inputs, EXAM)  # another process evaluated the same
    assert [folder.name for folder in (tmp_path / "exams").iterdir()] == [key(inputs)]


@pytest.mark.parametrize("answers", ["greedy", "sampled"])
def test_an_exam_that_a_grader_failed_on_is_not_cached(tmp_path: Path, answers: str) -> None:
    rows = [EXAM.greedy[0], EXAM.greedy[1] | {"verdict": "grader_failed", "correct": None}]
    save_exam(tmp_path, inputs_of(), replace(EXAM, **{answers: rows}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"checkpoint": Path("checkpoints/c0ffee")},
        {"part": SUMS.model_copy(update={"problems": 2})},
        {"part": SUMS.model_copy(update={"samples": 4})},
        {"part": SUMS.model_copy(update={"samples": 4, "temperature": 0.5})},
        {"asked": SUMS.model_copy(update={"levels": ("2",)})},  # other problems under the same name
        {"prompts": [[1, 2, 0], [1, 2, 1], [1, 2, 3]]},  # another system prompt, template, or way to render it
        {"config": EngineConfig(max_model_len=300)},
        {"sandbox": SandboxConfig(seconds=9.0)},
        {"max_completion_tokens": 65},
    ],
)
def test_every_setting_makes_another_exam(changes: dict[str, Any]) -> None:
    assert key(inputs_of(**changes)) != key(inputs_of())
    assert key(inputs_of(**changes)) == key(inputs_of(**changes))


@pytest.mark.parametrize(
    "changes", [{"part": SUMS.model_copy(update={"margin": 0.2})}, {"sandbox": SandboxConfig(workers=1)}]
)
def test_settings_that_no_answer_depends_on_do_not(changes: dict[str, Any]) -> None:
    assert inputs_of(**changes) == inputs_of()


@pytest.mark.parametrize("what", ["describe_device", "grader_version", "answering_version", "_package"])
def test_another_machine_grader_or_engine_makes_another(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inputs_of()
    monkeypatch.setattr(cache, what, lambda *_: "another")
    assert key(inputs_of()) != key(before)


def test_the_graders_version_changes_with_their_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(source: str) -> str:
        (tmp_path / "gsm8k.py").write_text(source)
        cache.grader_version.cache_clear()
        return cache.grader_version()

    monkeypatch.setattr(cache.rewards, "__path__", [str(tmp_path)])
    assert version("a = 1") == version("a = 1") != version("a = 2")
    cache.grader_version.cache_clear()


def test_a_change_of_a_users_benchmark_makes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    part, file = ExamPart(benchmark="cached_roman:Roman", problems=2), tmp_path / "cached_roman.py"
    source = 'from rewards.arithmetic import Arithmetic\n\nclass Roman(Arithmetic):\n    name = "roman"\n'
    file.write_text(source)
    importlib.invalidate_caches()
    first = key(inputs_of(part=part))
    assert first == key(inputs_of(part=part))
    file.write_text(f"{source}    # grades differently\n")
    assert key(inputs_of(part=part)) != first


def _without_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def _of_another_checkpoint(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["inputs"]["checkpoint"] = "c0ffee"
    (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize("harm", [_without_manifest, _of_another_checkpoint])
def test_a_damaged_exam_is_not_found_and_is_replaced(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    save_exam(tmp_path, inputs_of(), EXAM)
    harm(tmp_path / key(inputs_of()))
    assert load_exam(tmp_path, inputs_of()) is None
    save_exam(tmp_path, inputs_of(), EXAM)
    assert load_exam(tmp_path, inputs_of()) == EXAM


def test_orphans_are_exams_of_other_checkpoints_and_stale_drafts(tmp_path: Path) -> None:
    assert list(orphans(tmp_path / "none", set())) == []
    others = inputs_of(checkpoint=Path("c0ffee"))
    save_exam(tmp_path, inputs_of(), EXAM)
    save_exam(tmp_path, others, EXAM)
    stale, current = tmp_path / f"{DRAFT}x", tmp_path / f"{DRAFT}y"
    for folder in (stale, current):
        folder.mkdir()
    os.utime(stale, (time.time() - 86500, time.time() - 86500))
    assert list(orphans(tmp_path, {"cafe42", "c0ffee"})) == [(stale.name, stale)]
    assert dict(orphans(tmp_path, {"cafe42"})) == {stale.name: stale, "c0ffee": tmp_path / key(others)}
    _without_manifest(tmp_path / key(inputs_of()))
    assert tmp_path / key(inputs_of()) in dict(orphans(tmp_path, {"cafe42", "c0ffee"})).values()


def test_of_two_processes_that_cache_the_same_the_first_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = cache._move

    def moved_second(draft: Path, folder: Path, inputs: dict[str, str]) -> None:
        shutil.copytree(draft, other := draft.with_name(f"{DRAFT}other"))
        move(other, folder, inputs)
        move(draft, folder, inputs)

    monkeypatch.setattr(cache, "_move", moved_second)
    save_exam(tmp_path, inputs_of(), EXAM)
    assert load_exam(tmp_path, inputs_of()) == EXAM
    assert [folder.name for folder in tmp_path.iterdir()] == [key(inputs_of())]
