"""The hostile corpus against the sandbox: the verdict of each program, with all layers and with any one missing."""

import contextlib
import itertools
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from rewards.sandbox import Layer, Program, Sandbox
from rewards.verifier import Score
from tests.rewards.programs.hostile_programs import CATEGORIES, Hostile, read_corpus
from tests.rewards.programs.left_behind import adopt_orphans, left_behind, memory_mb, processes

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="without bubblewrap only root may make PID namespaces")

CORPUS = read_corpus()
NAMED = {hostile.name: hostile for hostile in CORPUS}
CHOSEN = [hostile for hostile in CORPUS if hostile.is_chosen]
QUICK = [hostile for hostile in CORPUS if hostile.is_quick]
LAYERS: tuple[Layer, ...] = ("bubblewrap", "landlock", "seccomp", "limits", "pid_namespace")
SECRET = "night-key-b7d20f4e89c6a153"  # escape/environment_secret* look for it
LISTENER = "\0nightschool-hostile-listener"  # escape/sockets_of_services looks for it


@dataclass(frozen=True)
class Run:
    """The scores of some programs, and the state of the machine before and after."""

    judged: list[tuple[Hostile, Score]]
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def offences(self) -> dict[str, str]:
        """The programs with a verdict that they may not get."""
        return {
            hostile.name: f"{score.verdict} ({score.detail}), allowed: {', '.join(sorted(hostile.allowed))}"
            for hostile, score in self.judged
            if score.verdict not in hostile.allowed
        }


def run(programs: Sequence[Hostile], without: Sequence[Layer] = (), workers: int | None = None) -> Run:
    """Judge all in one call. The parent has a secret in its environment and a listening socket, as owners do."""
    before = left_behind()
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as listener:
        patch.setenv("NIGHTSCHOOL_HOSTILE_SECRET", SECRET)
        with contextlib.suppress(OSError):  # another run of these tests listens
            listener.bind(LISTENER)
            listener.listen()
        with Sandbox(workers, without=without) as sandbox:
            scores = sandbox.run([hostile.program for hostile in programs])
    return Run(list(zip(programs, scores, strict=True)), before, left_behind(before))


@pytest.fixture(scope="module", autouse=True)
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    adopt_orphans()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        yield


@pytest.fixture(scope="module", params=[CHOSEN, pytest.param(CORPUS, marks=pytest.mark.full)], ids=["chosen", "all"])
def whole_run(request: pytest.FixtureRequest) -> Run:
    """The attacks, each followed by an honest program, so that the same workers judge both."""
    attacks = [hostile for hostile in request.param if hostile.category != "odd"]
    honest = [hostile for hostile in request.param if hostile.category == "odd"]
    return run([program for pair in zip(attacks, itertools.cycle(honest), strict=False) for program in pair])


def test_what_the_corpus_allows() -> None:
    """A category's verdicts are those of its kind; few programs rest on one layer alone."""
    verdicts = {category: {v for h in CORPUS if h.category == category for v in h.allowed} for category in CATEGORIES}
    failures = {"wrong", "crashed", "forbidden", "timeout", "out_of_memory"}
    assert verdicts["odd"] == {"correct"}
    assert verdicts["forging"] == failures
    assert verdicts["resources"] == failures
    assert verdicts["escape"] == {"wrong", "crashed", "forbidden"}
    needs = Counter(layer for hostile in CORPUS for layer in hostile.needs)
    assert set(needs) == {"seccomp", "limits"}
    assert needs["seccomp"] <= 15


@needs_bubblewrap
def test_every_program_gets_a_verdict_that_it_may_get_and_no_attack_a_reward(whole_run: Run) -> None:
    assert whole_run.offences == {}
    rewards = {(hostile.category == "odd", score.reward, score.parts["correct"]) for hostile, score in whole_run.judged}
    assert rewards == {(False, 0.0, 0.0), (True, 1.0, 1.0)}
    assert all(score.detail.isprintable() and len(score.detail) < 500 for _, score in whole_run.judged)


@needs_bubblewrap
def test_nothing_is_left_behind(whole_run: Run) -> None:
    before, after = dict(whole_run.before), dict(whole_run.after)
    assert set(after.pop("descriptors")) <= set(before.pop("descriptors"))  # what other tests left may be closed since
    assert after == before


@needs_bubblewrap
@pytest.mark.parametrize(
    ("layer", "programs"),
    [
        pytest.param("seccomp", [one for one in CHOSEN if one.is_quick and one.category == "escape"], id="chosen"),
        *(
            pytest.param(layer, CORPUS, id=layer, marks=[pytest.mark.full, *[needs_root] * (layer == "bubblewrap")])
            for layer in LAYERS
        ),
    ],
)
def test_the_other_layers_hold_when_one_is_missing(layer: Layer, programs: list[Hostile]) -> None:
    without_layer = run([hostile for hostile in programs if layer not in hostile.needs], without=(layer,))
    assert without_layer.offences == {}
    assert without_layer.after == without_layer.before


@needs_bubblewrap
def test_a_program_finds_nothing_of_the_one_before_it_in_the_same_worker() -> None:
    pairs = [
        ("escape/message_in_files", "escape/message_in_files"),
        ("escape/message_in_the_interpreter", "escape/message_in_the_interpreter"),
        ("forging/fails_with_a_telling_message", "forging/searches_its_whole_memory"),
        ("forging/garbage_for_the_next_program", "odd/generator"),
        ("forging/rewrites_type_slots", "odd/deeper_recursion_limit"),
        ("forging/patched_json", "odd/late_imports"),
        ("forging/redefines_isinstance_in_builtins", "odd/types_as_arguments"),
    ]
    in_one_worker = run([NAMED[name] for pair in pairs for name in pair * 2], workers=1)
    assert in_one_worker.offences == {}


@pytest.mark.full
@needs_bubblewrap
@pytest.mark.parametrize("whole_run", [CORPUS], indirect=True, ids=["all"])
def test_the_whole_corpus_gets_the_same_verdicts(whole_run: Run) -> None:
    """Of programs that use up seconds or memory only whether they pass: what ends them depends on other work."""

    def verdicts(judged: Run) -> dict[str, str]:
        return {
            hostile.name: score.verdict if hostile.category != "resources" else f"reward {score.reward}"
            for hostile, score in judged.judged
        }

    first, second = verdicts(whole_run), verdicts(run(CORPUS[::-1]))
    assert {name: (first[name], second[name]) for name in first if first[name] != second[name]} == {}


NIGHT = """
from rewards.sandbox import Program, Sandbox
sources = ["import time; time.sleep(3600)", "while True: pass"]
with Sandbox(2) as sandbox:
    print("running", flush=True)
    sandbox.run([Program(source, ("assert solve(3) == 4",), seconds=600) for source in sources])
"""


@needs_bubblewrap
def test_nothing_outlives_a_night_that_is_killed() -> None:
    before = left_behind()
    with subprocess.Popen([sys.executable, "-c", NIGHT], stdout=subprocess.PIPE) as night:
        assert night.stdout is not None
        assert night.stdout.readline() == b"running\n"
        time.sleep(0.3)
        running = [name for _, name in processes()]
        night.kill()
    assert len(running) > 6  # two wardens in their bubblewraps, with a judge and a program each
    assert left_behind(before) == before


SAMPLE = [hostile.program for hostile in random.Random(1).sample(QUICK, 100)]
BENIGN = [Program(f"def f(x):\n    return [x] * {n}", ("assert len(f(1)) > -1",)) for n in range(1000)]


@pytest.mark.full
@needs_bubblewrap
@pytest.mark.parametrize("programs", [BENIGN, SAMPLE], ids=["benign", "hostile"])
def test_the_pools_memory_is_flat(programs: list[Program]) -> None:
    with Sandbox() as sandbox:
        sandbox.run(programs)
        before = memory_mb()
        for _ in range(10):
            sandbox.run(programs)
        assert memory_mb() - before < 4
