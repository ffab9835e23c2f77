"""What a night samples does not depend on how many machines there are, nor on one that is lost."""

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pytest

from conf.schema import EngineConfig, StudentConfig
from models.engine.environment import engine_environment
from models.rollout import Rollout
from rewards.mbpp import Mbpp
from rewards.programs.unit_tests import ProgramTests
from rewards.verifier import Attempt, Problem
from tasks.evaluation import stored_answers
from tasks.rollouts import grade
from tasks.rollouts.verified import Player, sample_verified
from tasks.workers import cluster as machines
from tasks.workers import engine_process
from tasks.workers.cluster import HERE, Cluster, read_machines
from tasks.workers.connection import danger_of, is_loopback
from tasks.workers.worker import HoursOverError, Worker
from tests.chaos import tiny_engine
from tests.tasks.doubles.processes import gone_within
from tests.waiting import awaited

PROMPTS = [[n, n + 1, n + 2] for n in range(3, 19)]
CONNECT = "from tasks.workers.connection import connect; import sys; connect(sys.argv[1])"
NIGHT = """
import sys
from pathlib import Path
from tasks.workers import engine_process
from tests.tasks.workers import test_cluster
engine_process.sample = test_cluster.slow_sample
night = test_cluster.Cluster(sys.argv[1], Path(sys.argv[2]), "engine", test_cluster.engine_environment())
while True:
    test_cluster.sampled(night, Path(sys.argv[3]))
"""
AddNode = Callable[[str], Any]


def slow_sample(*arguments: Any, **options: Any) -> Any:
    """Leave a mark with this process's number, and sample a moment later; a new process waits longer.

    All wait until two processes have begun, so that one cannot do everything before a busy machine has started another.
    """
    marks().mkdir(exist_ok=True)
    mark = marks() / str(os.getpid())
    pause = 0.2 if mark.exists() else 3
    mark.touch()
    until = time.monotonic() + 120
    while len([*marks().glob("*")]) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(pause)
    return tiny_engine.sample(*arguments, **options)


def marks() -> Path:
    return Path(os.environ["XDG_CACHE_HOME"], "marks")


@pytest.fixture(autouse=True)
def _in_vllms_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "sample", tiny_engine.sample)


@pytest.fixture(scope="module")
def incidents() -> list[str]:
    return []


@pytest.fixture(scope="module")
def engine(ray_cluster: Any, tmp_path_factory: pytest.TempPathFactory, incidents: list[str]) -> Iterator[Cluster]:
    """A night's engine on the cluster."""
    night = tmp_path_factory.mktemp("night")
    found = Cluster(ray_cluster.address, night, "engine", engine_environment(), night / "log", incidents.append)
    yield found
    found.end()


@pytest.fixture(scope="module")
def second(engine: Cluster, add_node: AddNode) -> Any:
    return add_node("second")


@pytest.fixture(scope="module")
def alone(student: Path) -> Iterator[list[list[Rollout]]]:
    worker = Worker("engine", engine_environment())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine_process, "sample", tiny_engine.sample)
        yield sampled(worker, student)
    worker.end()


def sampled(engine: Worker, student: Path) -> list[list[Rollout]]:
    config = EngineConfig(shard_prompts=2)
    player = Player(student, StudentConfig(), config, engine, 9, temperature=1.0)
    return sample_verified(player, PROMPTS, 8, seed=7)[0]


def engine_of(node: Any) -> int:
    """Return the engine's process on a node, as soon as it samples."""
    return running_on(node, lambda process: (marks() / str(process.pid)).exists())


def running_on(node: Any, wanted: Callable[[psutil.Process], bool]) -> int:
    """Return a process on a node, as soon as one is what is wanted."""
    raylets = [psutil.Process(started.process.pid) for started in node.all_processes["raylet"]]

    def look() -> int | None:
        for raylet in raylets:
            for process in raylet.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if wanted(process):
                        return process.pid
        return None

    return awaited(look, "such work on the node", 180)


@pytest.mark.full
def test_a_killed_night_leaves_no_process(ray_cluster: Any, student: Path, add_node: AddNode, tmp_path: Path) -> None:
    node = add_node("orphaned")
    night = subprocess.Popen([sys.executable, "-c", NIGHT, ray_cluster.address, tmp_path, student])
    engine = engine_of(node)
    night.kill()
    night.wait()
    assert gone_within(60, engine)
    ray_cluster.remove_node(node, allow_graceful=False)


@pytest.mark.full
def test_the_number_of_machines_changes_nothing(
    engine: Cluster,
    second: Any,
    incidents: list[str],
    student: Path,
    alone: list[list[Rollout]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len({rollout.text for group in alone for rollout in group}) > 10
    monkeypatch.setattr(engine_process, "sample", slow_sample)
    assert sampled(engine, student) == alone
    done = read_machines(engine.file.parent)
    assert done.keys() == {HERE, "second"}
    assert sum(machine["shards"] for machine in done.values()) == 8
    assert incidents == []
    (copy,) = Path(os.environ["XDG_CACHE_HOME"]).glob(f"nightschool/node-0/{student.name}")
    assert copy.is_dir()


@pytest.mark.full
def test_other_machines_are_waited_for_in_hours(engine: Cluster, second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "POLL", 0.1)
    over = Event()

    def job(worker: Worker, number: int) -> None:
        if worker is engine:
            engine.until = time.time()
        else:
            assert over.wait(60)

    with pytest.raises(HoursOverError, match="other machines"):
        engine.spread(job, range(40))
    over.set()
    engine.until = math.inf


@pytest.mark.full
def test_what_a_lost_node_had_begun_is_done_elsewhere(
    ray_cluster: Any,
    engine: Cluster,
    second: Any,
    incidents: list[str],
    student: Path,
    alone: list[list[Rollout]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_process, "sample", slow_sample)
    shutil.rmtree(marks(), ignore_errors=True)
    killed = list[int]()

    def kill_amid_a_shard() -> None:
        killed.append(engine_of(second))
        ray_cluster.remove_node(second, allow_graceful=False)

    killer = Thread(target=kill_amid_a_shard)
    killer.start()
    assert sampled(engine, student) == alone
    killer.join()
    assert len({rollout.text for group in alone for rollout in group}) > 10
    assert [incident for incident in incidents if incident.startswith("the machine second was lost; others do its")]
    assert gone_within(60, killed[0])


@pytest.mark.full
def test_programs_of_a_lost_machine_are_run_elsewhere(
    ray_cluster: Any, engine: Cluster, incidents: list[str], add_node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grade, "PART", 4)
    problem = Problem("mbpp/1", "mbpp", "?", ProgramTests("", ("assert f(1) == 2",), "f").truth())
    programs = [f"def f(x):\n    for _ in range(10**7): pass\n    return x + {n % 2}  # {n}" for n in range(80)]
    attempts = [Attempt(problem, f"```python\n{program}\n```") for program in programs]
    node = add_node("judging")
    sandboxes = list[int]()

    def remove_amid_a_part() -> None:
        sandboxes.append(running_on(node, lambda process: process.name() == "bwrap"))
        ray_cluster.remove_node(node, allow_graceful=False)

    remover = Thread(target=remove_amid_a_part)
    remover.start()
    scores = grade.scores_of(Mbpp(), attempts, engine)
    remover.join()
    assert [one.reward for one in scores] == [n % 2 for n in range(80)]
    assert [incident for incident in incidents if incident.startswith("the machine judging was lost")]
    assert gone_within(60, sandboxes[0])


@pytest.mark.full
def test_a_machine_that_would_sample_otherwise_is_refused_by_name(
    engine: Cluster,
    incidents: list[str],
    student: Path,
    alone: list[list[Rollout]],
    add_node: AddNode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_node("other")
    device = stored_answers.versions()["device"]
    monkeypatch.setattr(stored_answers, "describe_device", lambda: "another processor")
    assert sampled(engine, student) == alone
    refused = f"the machine other does not help: it would sample differently (device {device}, here another processor)"
    assert refused in incidents


@pytest.mark.full  # Ray tries for twenty seconds
def test_a_wrong_token_is_refused(ray_cluster: Any) -> None:
    command = [sys.executable, "-c", CONNECT, ray_cluster.address]
    environment = os.environ | {"RAY_AUTH_TOKEN": "cd" * 32}
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert f"InputError: cluster.address: {ray_cluster.address} is no Ray cluster that can be used" in refused.stderr


@pytest.mark.parametrize(
    ("address", "own"), [("127.0.0.1:6379", True), ("[::1]:1", True), ("localhost:1", True), ("10.0.0.2:6379", False)]
)
def test_which_addresses_only_the_machine_itself_can_reach(address: str, own: bool) -> None:
    assert is_loopback(address) == own


@pytest.mark.parametrize(
    ("code", "said", "danger"),
    [
        (1, "ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken", None),
        (0, "", "requires no token, so anyone"),
        (1, "ray.exceptions.RpcError: Timed out", r"did not say .* \(ray.exceptions.RpcError: Timed out\); try again"),
        (None, "", "did not say within 120 s"),
    ],
)
def test_a_cluster_that_does_not_ask_for_a_token_is_dangerous(
    code: int | None, said: str, danger: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if code is None:
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    found = danger_of("10.0.0.2:6379")
    assert found is danger is None or re.search(danger or "nothing", found or "")
