"""Serves a home's Prefect and MLflow web pages."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from conf.storage.home import Home
from flows.orchestration.reconcile import show_crashed, show_killed
from flows.orchestration.server import IDLE_SERVICES, ServerError, start_server, wait_until_ready
from flows.run.child import Child, end_child, start_child
from flows.web.address import PASSWORD, USER, Address, listener
from flows.web.health import check_mlflow

Servers = dict[str, tuple[Child, Path]]  # each server's process and log, by the server's name


@contextmanager
def pages(
    home: Home, prefect_port: int, mlflow_port: int, address: Address, idle: Sequence[str] = IDLE_SERVICES
) -> Iterator[tuple[str, Servers]]:
    """Run Prefect's and MLflow's servers during the block. Print their URLs. Yield Prefect's API URL and the servers.

    `idle`: which services of Prefect's server to turn off. Raises InputError if a port is taken, and ServerError if
    Prefect's server does not start.
    """
    listener(address, prefect_port, "--prefect-port").close()
    listener(address, mlflow_port, "--mlflow-port").close()
    check_mlflow(home.database)
    home.make_private()
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
        print(f"Prefect: {api.removesuffix('/api')}\nMLflow:  {experiment}")
        if address.password:
            print(f"MLflow asks for the user {USER} and the password; Prefect for both as {USER}:PASSWORD.")
        yield api, {"Prefect's server": (prefect, log), "MLflow's server": (mlflow, home.root / "mlflow.log")}
    finally:
        for server in (prefect, mlflow):
            end_child(server)


def wait_for_end(servers: Servers) -> NoReturn:
    """Wait until one of the servers' processes ends, and then raise ServerError."""
    while True:
        for name, (process, log) in servers.items():
            if process.poll() is not None:
                raise ServerError(f"{name} ended with code {process.returncode}; its log: {log}")
        time.sleep(0.5)


def experiment_page(home: Home) -> str:
    """Return the URL fragment of MLflow's page: the nights' experiment if exactly one exists, else all experiments."""
    from mlflow import MlflowClient

    from tasks.monitoring.tracking import KIND, TRAINING_VIEW

    client = MlflowClient(tracking_uri=home.database) if home.database_file.exists() else None
    experiments = client.search_experiments() if client else []
    ids = [experiment.experiment_id for experiment in experiments if KIND.items() <= experiment.tags.items()]
    return f"#/experiments{f'/{ids[0]}' if len(ids) == 1 else ''}?{TRAINING_VIEW}"


def _start_mlflow(home: Home, port: int, address: Address) -> Child:
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", home.database]
    command += ["--default-artifact-root", (home.root / "mlartifacts").as_uri(), "--app-name", "nightschool"]
    # MLflow's default list of allowed hosts mistakes the name 10.evil.example for a private network address
    hosts = [f"{name}:{port}" for name in address.names]
    command += ["--allowed-hosts", ",".join(hosts)]
    command += ["--cors-allowed-origins", ",".join(f"http://{host}" for host in hosts)]
    command += ["--host", address.host, "--port", str(port), "--workers", "1"]
    return start_child(command, os.environ | {PASSWORD: address.password or ""}, home.root / "mlflow.log")
