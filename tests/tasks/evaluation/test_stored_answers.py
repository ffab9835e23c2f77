"""Stored answers are found by all that they depend on, and by nothing less; damaged ones are written again."""

import importlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.schema import EngineConfig, SandboxConfig
from conf.sections.benchmark import ExamPart
from rewards.verifier import Problem
from tasks.evaluation import stored_answers
from tasks.evaluation.stored_answers import load_answers, orphans, problem_key, save_answers
from tasks.stage import MANIFEST, digest_of
from tests.tasks.doubles.exam import ANSWERS, SUMS, inputs_of, row

PROBLEM = Problem("arithmetic/1", "arithmetic", "1 + 1?", "2", "1")


def test_stored_answers_are_found_and_the_same_whatever_was_stored_with_them(tmp_path: Path) -> None:
    exams, inputs = tmp_path / "exams", inputs_of()
    assert load_answers(exams, inputs) == {}
    for _ in range(2):  # another process answered the same
        save_answers(exams, inputs, ANSWERS, 12.5)
    more = {"c": [row("c", sample=n) for n in range(2)]}
    for together in (more, ANSWERS | more):  # and another one some of the same
        save_answers(exams, inputs, together, 1.0)
    assert load_answers(exams, inputs) == ANSWERS | more
    assert len(list(exams.iterdir())) == 4


def test_an_answer_that_the_grader_failed_on_is_not_stored(tmp_path: Path) -> None:
    save_answers(tmp_path, inputs_of(), ANSWERS | {"b": [row("b"), row("b", "grader_failed", sample=1)]}, 1.0)
    assert load_answers(tmp_path, inputs_of()).keys() == {"a"}
    save_answers(tmp_path / "none", inputs_of(), {"b": [row("b", "grader_failed")]}, 1.0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"checkpoint": Path("checkpoints/c0ffee")}, False),
        ({"part": ExamPart(benchmark="gsm8k")}, False),
        ({"part": SUMS.model_copy(update={"lenient": True})}, False),
        ({"samples": 4}, False),
        ({"samples": 4, "temperature": 0.5}, False),
        ({"config": EngineConfig(max_model_len=300)}, False),
        ({"sandbox": SandboxConfig(seconds=9.0)}, False),
        ({"max_tokens": 65}, False),
        ({"part": SUMS.model_copy(update={"margin": 0.2, "problems": 50, "levels": ("1", "2")})}, True),
        ({"sandbox": SandboxConfig(allow_missing=("landlock",))}, True),
    ],
)
def test_every_setting_that_answers_depend_on_makes_others(changes: dict[str, Any], same: bool) -> None:
    assert (inputs_of(**changes) == inputs_of()) is same
    assert (digest_of(inputs_of(**changes)) == digest_of(inputs_of())) is same


def test_a_problem_is_known_by_what_is_asked_and_graded() -> None:
    """Another truth, or another system prompt, template, or way to render it."""
    others = [(Problem("arithmetic/1", "arithmetic", "1 + 1?", "3", "1"), [1, 2]), (PROBLEM, [1, 3])]
    assert len({problem_key(*asked) for asked in [(PROBLEM, [1, 2]), *others]}) == 3


@pytest.mark.parametrize("what", ["describe_device", "grader_version", "ANSWERS_VERSION", "_package"])
def test_another_machine_grader_engine_or_sampler_makes_others(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = inputs_of()
    monkeypatch.setattr(stored_answers, what, "another" if what.isupper() else lambda *_: "another")
    assert digest_of(inputs_of()) != digest_of(before)


def test_the_graders_version_changes_with_their_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(source: str) -> str:
        (tmp_path / "gsm8k.py").write_text(source)
        stored_answers.grader_version.cache_clear()
        return stored_answers.grader_version()

    monkeypatch.setattr(stored_answers.rewards, "__path__", [str(tmp_path)])
    assert version("a = 1") == version("a = 1") != version("a = 2")
    stored_answers.grader_version.cache_clear()


@pytest.mark.parametrize("package", ["math-verify", "sympy", "reasoning-gym", "gymnasium"])
def test_the_graders_version_names_their_packages(package: str) -> None:
    assert f"{package} " in f"{stored_answers.grader_version()} "


COUNTDOWN = "from tests.rewards.countdown import Countdown\n\n"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("own_benchmark", 'from rewards.arithmetic import Arithmetic\n\nclass Own(Arithmetic):\n    name = "roman"\n'),
        ("own_environment", f"{COUNTDOWN}class Own(Countdown):\n    pass\n"),
        ("front:own_elsewhere", f"{COUNTDOWN}class Own(Countdown):\n    pass\n"),  # `front` only imports it
        ("own_function", f"{COUNTDOWN}def Own(source):\n    return Countdown(source)\n"),
    ],
    ids=["benchmark", "environment", "environment imported", "function"],
)
def test_a_change_of_a_users_benchmark_makes_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, source: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    front, _, defined = module.rpartition(":")
    (tmp_path / "front.py").write_text(f"from {defined} import Own\n")
    part, file = ExamPart(benchmark=f"{front or defined}:Own", problems=2), tmp_path / f"{defined}.py"
    file.write_text(source)
    importlib.invalidate_caches()
    first = digest_of(inputs_of(part=part))
    assert first == digest_of(inputs_of(part=part))
    file.write_text(f"{source}    # grades differently\n")
    assert digest_of(inputs_of(part=part)) != first


def _without_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def _of_another_checkpoint(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["inputs"]["checkpoint"] = "c0ffee"
    (folder / MANIFEST).write_text(json.dumps(manifest))


def _with_other_keys(folder: Path) -> None:
    (folder / "keys.json").write_text('["a", "c"]')


@pytest.mark.parametrize("harm", [_without_manifest, _of_another_checkpoint, _with_other_keys])
def test_a_damaged_folder_is_ignored_and_replaced(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    save_answers(tmp_path, inputs_of(), ANSWERS, 1.0)
    harm(next(tmp_path.iterdir()))
    assert load_answers(tmp_path, inputs_of()) == {}
    save_answers(tmp_path, inputs_of(), ANSWERS, 1.0)
    assert load_answers(tmp_path, inputs_of()) == ANSWERS


def test_orphans_are_answers_of_other_checkpoints_and_what_crashes_left(tmp_path: Path) -> None:
    assert list(orphans(tmp_path / "none", set())) == []
    others = inputs_of(checkpoint=Path("c0ffee"))
    save_answers(tmp_path, inputs_of(), ANSWERS, 1.0)
    (ours,) = tmp_path.iterdir()
    save_answers(tmp_path, others, ANSWERS, 1.0)
    (theirs,) = tmp_path.glob(f"{digest_of(others)}-*")
    stale, current = tmp_path / f"{digest_of(others)}-x", tmp_path / f"{digest_of(others)}-y"
    for folder in (stale, current):
        folder.mkdir()
    os.utime(stale, (time.time() - 86500, time.time() - 86500))
    assert list(orphans(tmp_path, {"cafe42", "c0ffee"})) == [(stale.name, stale)]
    assert dict(orphans(tmp_path, {"cafe42"})) == {stale.name: stale, "c0ffee": theirs}
    _without_manifest(ours)
    assert ours not in dict(orphans(tmp_path, {"cafe42", "c0ffee"})).values()  # another process may be writing it
