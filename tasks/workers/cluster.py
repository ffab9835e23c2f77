"""An engine on several machines: this one's, and one on each node of a Ray cluster that offers one."""

import contextvars
import json
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from conf.storage.durable import read_json, write_atomically
from tasks.evaluation.stored_answers import versions
from tasks.workers.connection import connect
from tasks.workers.node import Node
from tasks.workers.remote import RemoteWorker
from tasks.workers.worker import POLL, HoursOverError, Worker

A = TypeVar("A")
R = TypeVar("R")

RESOURCE = "engine"  # what a node offers: ray start --resources='{"engine": 1}'
JOINING = 120.0  # seconds for an actor to start and to describe its machine
HERE = "this machine"
FILE = "machines.json"  # in the night's folder: how many shards each machine did, and in how many seconds
log = logging.getLogger("nightschool")


class Shared(Generic[A, R]):
    """The items of a job that several machines do, each the next that is left."""

    def __init__(self, job: Callable[[Worker, A], R], items: Sequence[A]) -> None:
        self.job, self.items = job, items
        self.answers: dict[int, R] = {}
        self.done: list[tuple[str, float]] = []  # by whom, and in how many seconds
        self._left = deque(range(len(items)))
        self._changed = threading.Condition()

    def take(self) -> int | None:
        """Return the number of an item to do; None if none is left."""
        with self._changed:
            return self._left.popleft() if self._left else None

    def wait(self, check: Callable[[], None]) -> int | None:
        """Return the number of an item to do, as soon as one is left; None when all are done.

        Meanwhile `check` is called every few seconds, and may raise.
        """
        with self._changed:
            while not self._left and len(self.answers) < len(self.items):
                check()
                self._changed.wait(POLL)
            return self._left.popleft() if self._left else None

    def do(self, number: int, name: str, worker: Worker) -> None:
        """Do an item with a worker."""
        began = time.monotonic()
        answer = self.job(worker, self.items[number])
        with self._changed:
            self.answers[number] = answer
            self.done.append((name, time.monotonic() - began))
            self._changed.notify_all()

    def give_back(self, number: int) -> None:
        """Leave an item to others."""
        with self._changed:
            self._left.appendleft(number)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let nobody take another item."""
        with self._changed:
            self._left.clear()


class Cluster(Worker):
    """An engine's process on this machine, which shares its work with those of a Ray cluster's nodes.

    A node helps only where all that an answer depends on is the same as here: versions, graders and device. What a lost
    node had begun is done by others; this machine alone can do it all. `folder`: the night's. The rest: as `Worker`.
    """

    def __init__(self, address: str, folder: Path, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address, self.file = address, folder / FILE
        self._nodes: dict[str, RemoteWorker] = {}  # those that help, by Ray's id
        self._left_out: set[str] = set()  # ids
        self._lock = threading.Lock()  # of the two above, and of the file

    def spread(self, job: Callable[[Worker, A], R], items: Sequence[A]) -> list[R]:
        """Return what a job makes of each item, in order; whichever machine is free does the next.

        Raises what the job raises here, and HoursOverError where other machines are waited for after `until`.
        """
        with self._lock:
            self._join()
        shared = Shared(job, items)
        for identity, node in list(self._nodes.items()):
            run = contextvars.copy_context().run  # the stage's name goes along: calls are timed by it
            threading.Thread(target=run, args=(self._work_on, identity, node, shared), daemon=True).start()
        try:
            while (number := shared.wait(self._check)) is not None:
                shared.do(number, HERE, self)
        finally:
            shared.stop()
            with self._lock:
                add_machines(self.file, list(shared.done))
        return [shared.answers[number] for number in range(len(items))]

    def end(self, grace: float = 5.0) -> None:
        """Close for good, here and on the nodes."""
        super().end(grace)
        for node in list(self._nodes.values()):
            node.end()

    def _check(self) -> None:
        self._refuse_if_ended()
        if time.time() >= self.until:
            raise HoursOverError("the night's hours were over before the other machines were done")

    def _work_on(self, identity: str, node: RemoteWorker, shared: Shared[Any, Any]) -> None:
        """Let a node do items until none is left or it fails; then the night does without it."""
        while (number := shared.take()) is not None:
            try:
                shared.do(number, node.name, node)
            except Exception as error:  # whatever it is: where it is not the node's fault, it happens here as well
                if self._nodes.pop(identity, None) is not None:
                    self._leave_out(identity, node, f"was lost; others do its work ({first_line(error)})")
                shared.give_back(number)
                return

    def _join(self) -> None:
        """Look which nodes there are, and let new ones help."""
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
                self._leave_out(identity, worker, f"does not help: it would sample otherwise ({'; '.join(other)})")
                continue
            self._nodes[identity] = worker
            log.info("the machine %s helps", worker.name)

    def _leave_out(self, identity: str, node: RemoteWorker, why: str) -> None:
        self._left_out.add(identity)
        node.end()
        self.on_loss(f"the machine {node.name} {why}")


def engine_nodes(address: str) -> list[dict[str, Any]]:
    """Return the nodes of a cluster that offer an engine, as Ray describes them. Raises InputError (see `connect`)."""
    connect(address)
    import ray

    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]


def start_actor(node: Mapping[str, Any]) -> Any:
    """Return a new actor (`Node`) on a node, which it has to itself: its GPUs too."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options: dict[str, Any] = {
        "num_cpus": 0,
        "num_gpus": node["Resources"].get("GPU", 0),
        "resources": {RESOURCE: 1},
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
    }
    return ray.remote(**options)(Node).remote(os.environ.get("OMP_NUM_THREADS"))


def read_machines(folder: Path) -> dict[str, dict[str, float]]:
    """Return what each machine did in a night: `shards` of prompts or programs, and the `seconds` they took."""
    return read_json(folder / FILE, {})


def add_machines(file: Path, done: Sequence[tuple[str, float]]) -> None:
    """Add shards, each by whom and in how many seconds, to what each machine did before."""
    machines = read_machines(file.parent)
    for name, seconds in done:
        machine = machines.setdefault(name, {"shards": 0, "seconds": 0.0})
        machine["shards"] += 1
        machine["seconds"] += seconds
    write_atomically(file, json.dumps(machines))


def figures(folder: Path) -> dict[str, float]:
    """Return what each machine did in a night as MLflow's figures, `machines/<name>/shards` and `…/seconds`."""
    named = {re.sub(r"[^\w.-]", "_", name): done for name, done in read_machines(folder).items()}
    return {f"machines/{name}/{what}": value for name, done in named.items() for what, value in done.items()}


def first_line(error: Exception) -> str:
    """Return an error in at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
