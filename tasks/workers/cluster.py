"""An engine that spans several machines: this machine, and each node of a Ray cluster that offers an engine."""

import contextvars
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.storage.durable import read_json, write_atomically
from conf.storage.log import log
from tasks.evaluation.stored_answers import versions
from tasks.workers.connection import connect
from tasks.workers.heartbeat import POLL
from tasks.workers.remote import EngineActor, RemoteWorker
from tasks.workers.worker import A, HoursOverError, R, Worker

RESOURCE = "engine"  # the resource that a node offers: ray start --resources='{"engine": 1}'
JOINING = 120.0  # seconds for an actor to start and describe its machine
HERE = "this machine"
FILE = "machines.json"  # in the night's folder: how many shards each machine finished, and how many seconds they took


class Cluster(Worker):
    """The engine's process on this machine, which shares its work with the nodes of a Ray cluster.

    A node may help only if its software versions, graders and device match this machine's, because all of them affect
    answers. Other machines redo the work of a lost node. `folder`: the night's folder. Other arguments: see `Worker`.
    """

    def __init__(self, address: str, folder: Path, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address, self.file = address, folder / FILE
        self._nodes: dict[str, RemoteWorker] = {}  # the nodes that help, by their ids in Ray
        self._left_out: set[str] = set()  # ids of unsuitable and lost nodes
        self._lock = threading.Lock()  # guards the file, and the two attributes above

    def spread(self, job: Callable[[Worker, A], R], items: Sequence[A]) -> list[R]:
        """Run a job on each item, and return the results in order. A machine takes the next item whenever it is free.

        Raises what the job raises on this machine, and HoursOverError if other machines are still busy at `until`.
        """
        with self._lock:
            self._join()
        left, answers = deque(range(len(items))), dict[int, R]()
        done = list[tuple[str, float]]()  # each item's machine and seconds

        def work(name: str, worker: Worker) -> None:
            while left:
                try:
                    number, began = left.popleft(), time.monotonic()
                except IndexError:  # another machine took the last one
                    return
                try:
                    answers[number] = job(worker, items[number])
                except Exception:
                    left.appendleft(number)  # for another machine
                    raise
                done.append((name, time.monotonic() - began))

        def help_out(identity: str, node: RemoteWorker) -> None:
            try:
                work(node.name, node)
            except Exception as error:  # any error: one that is not the node's fault will happen here as well
                if self._nodes.pop(identity, None) is not None:
                    self._leave_out(identity, node, f"was lost; others do its work ({first_line(error)})")

        threads = []
        for helper in list(self._nodes.items()):
            run = contextvars.copy_context().run  # keeps the stage's name, by which calls are timed
            threads.append(threading.Thread(target=run, args=(help_out, *helper), daemon=True))
            threads[-1].start()
        try:
            work(HERE, self)
            while len(answers) < len(items):
                self._refuse_if_ended()
                if time.time() >= self.until:
                    raise HoursOverError("time ran out before the other machines were done")
                for thread in threads:
                    thread.join(POLL / len(threads))
                work(HERE, self)  # items that a lost machine left
        finally:
            left.clear()
            with self._lock:
                add_machines(self.file, list(done))
        return [answers[number] for number in range(len(items))]

    def end(self, grace: float = 5.0) -> None:
        """Stop the engines on this machine and on the nodes. Pending and later calls raise WorkerEndedError."""
        super().end(grace)
        for node in list(self._nodes.values()):
            node.end()

    def _join(self) -> None:
        """Look for new nodes of the cluster, and add the suitable ones to those that help."""
        nodes = engine_nodes(self.address)
        import ray

        taken, new = {node.name for node in self._nodes.values()}, list[tuple[str, RemoteWorker, Any]]()
        for node in nodes:
            identity, name = node["NodeID"], node["NodeName"]
            if identity not in self._nodes and identity not in self._left_out:
                name = f"{name} ({identity[:6]})" if name in taken else name
                worker = RemoteWorker(name, start_actor(node), self.on_loss)
                new.append((identity, worker, worker.begin("call", versions, (), {})))
                taken.add(name)
        limit = time.monotonic() + JOINING
        for identity, worker, described in new:
            try:
                theirs: dict[str, str] = ray.get(described, timeout=max(0.0, limit - time.monotonic()))
            except Exception as error:
                self._leave_out(identity, worker, f"does not help: it did not start ({first_line(error)})")
                continue
            ours = versions()
            if other := [f"{what} {theirs[what]}, here {ours[what]}" for what in ours if theirs[what] != ours[what]]:
                self._leave_out(identity, worker, f"does not help: it would sample differently ({'; '.join(other)})")
                continue
            self._nodes[identity] = worker
            log.info("the machine %s helps", worker.name)

    def _leave_out(self, identity: str, node: RemoteWorker, why: str) -> None:
        self._left_out.add(identity)
        node.end()
        self.on_loss(f"the machine {node.name} {why}")


def engine_nodes(address: str) -> list[dict[str, Any]]:
    """Return a cluster's live nodes that offer an engine, as Ray describes them. Raises InputError (see `connect`)."""
    connect(address)
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]


def start_actor(node: Mapping[str, Any]) -> Any:
    """Start an `EngineActor` that takes a node's engine slot and all GPUs of that node. Return the actor."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options: dict[str, Any] = {
        "num_cpus": 0,
        "num_gpus": node["Resources"].get("GPU", 0),
        "resources": {RESOURCE: 1},
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
    }
    return ray.remote(**options)(EngineActor).remote(os.environ.get("OMP_NUM_THREADS"))


def read_machines(folder: Path) -> dict[str, dict[str, float]]:
    """Return, for each machine, how many `shards` (of prompts or programs) it finished and the `seconds` they took."""
    return read_json(folder / FILE, {})


def add_machines(file: Path, done: Sequence[tuple[str, float]]) -> None:
    """Add finished shards to each machine's totals in a file. `done`: for each shard, the machine and the seconds."""
    machines = read_machines(file.parent)
    for name, seconds in done:
        machine = machines.setdefault(name, {"shards": 0, "seconds": 0.0})
        machine["shards"] += 1
        machine["seconds"] += seconds
    write_atomically(file, json.dumps(machines))


def figures(folder: Path) -> dict[str, float]:
    """Return the MLflow metrics of a night's machines: `machines/<name>/shards` and `machines/<name>/seconds`."""
    return {
        f"machines/{name}/{what}": value for name, done in read_machines(folder).items() for what, value in done.items()
    }


def first_line(error: Exception) -> str:
    """Return an error's message as one line of at most 200 characters, or the error's type if it has no message."""
    return " ".join(str(error).split())[:200] or type(error).__name__
