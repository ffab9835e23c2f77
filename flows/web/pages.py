"""Prefect's and MLflow's pages of a home."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from conf.storage.home import Home
from flows.orchestration.reconcile import show_crashed, show_killed
from flows.orchestration.server import IDLE_SERVICES, ServerError, start_server, wait_until_ready
from flows.web.address import PASSWORD, USER, Address, require_free
from tasks.workers import die_with_parent


@dataclass(frozen=True)
class Pages:
    """Both servers while they run: where the API is, what people are told, and each process with its log, by name."""

    api: str
    told: str
    running: dict[str, tuple[subprocess.Popen[bytes], Path]]


def serve(home: Home, prefect_port: int, mlflow_port: int, address: Address) -> None:
    """Serves the pages at an address until Ctrl-C, and prints where they are. Raises ServerError where one ends."""
    with pages(home, prefect_port, mlflow_port, address) as served:
        print(f"{served.told}\nCtrl-C ends both.", flush=True)
        wait_for_end(served.running)


@contextmanager
def pages(
    home: Home, prefect_port: int, mlflow_port: int, address: Address, idle: Sequence[str] = IDLE_SERVICES
) -> Iterator[Pages]:
    """Both servers, ready, and ended afterwards. `idle`: the services of Prefect's server that do not run.

    Raises InputError for a port that is taken, ServerError where Prefect's server does not start.
    """
    require_free(prefect_port, address.host, "--prefect-port")
    require_free(mlflow_port, address.host, "--mlflow-port")
    home.own()
    folder = home.root / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    show_killed(home)
    experiment = f"{address.url(mlflow_port)}/{experiment_page(home)}"
    prefect, api = start_server(folder, prefect_port, log, address, idle)
    mlflow = _start_mlflow(home, mlflow_port, address)
    try:
        wait_until_ready(prefect, api, log)
        show_crashed(home, api, address.key)
        told = f"Prefect: {api.removesuffix('/api')}\nMLflow:  {experiment}"
        if address.password:
            told += f"\nMLflow asks for the user {USER} and the password; Prefect for both as {USER}:PASSWORD."
        running = {"Prefect's server": (prefect, log), "MLflow's server": (mlflow, home.root / "mlflow.log")}
        yield Pages(api, told, running)
    finally:
        for server in (prefect, mlflow):
            end(server)


def wait_for_end(running: Mapping[str, tuple[subprocess.Popen[bytes], Path]]) -> NoReturn:
    """Waits until one of the processes ends, which none should, and raises ServerError then."""
    while True:
        for name, (process, log) in running.items():
            if process.poll() is not None:
                raise ServerError(f"{name} ended with code {process.returncode}; its log: {log}")
        time.sleep(0.5)


def end(server: subprocess.Popen[bytes]) -> None:
    """Kills a server and the processes that it started: it leads a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def experiment_page(home: Home) -> str:
    """Where MLflow's pages show the nights' experiment as a training, from the server's root on; of several, all."""
    from mlflow import MlflowClient

    from tasks.tracking import KIND, TRAINING_VIEW

    found = []
    if home.database_file.exists():
        experiments = MlflowClient(tracking_uri=home.database).search_experiments()
        found = [one.experiment_id for one in experiments if KIND.items() <= one.tags.items()]
    return f"#/experiments{f'/{found[0]}' if len(found) == 1 else ''}?{TRAINING_VIEW}"


def _start_mlflow(home: Home, port: int, address: Address) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", home.database]
    command += ["--default-artifact-root", (home.root / "mlartifacts").as_uri(), "--app-name", "nightschool"]
    # MLflow's own list takes a stranger's 10.evil.example for an address of a private network
    places = [f"{name}:{port}" for name in address.names]
    command += ["--allowed-hosts", ",".join(places)]
    command += ["--cors-allowed-origins", ",".join(f"http://{place}" for place in places)]
    with (home.root / "mlflow.log").open("ab") as output:
        return subprocess.Popen(
            [*command, "--host", address.host, "--port", str(port), "--workers", "1"],
            env=os.environ | {PASSWORD: address.password or ""},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),
        )
