"""Prefect's and MLflow's pages of a home."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from conf.home import Home
from flows.address import PASSWORD, USER, Address
from flows.crashed_runs import show_crashed, show_killed
from flows.prefect_server import start_server, wait_until_ready
from tasks.workers import die_with_parent


def serve(home: Home, prefect_port: int, mlflow_port: int, address: Address) -> None:
    """Starts both servers at an address, prints where they are, and ends them with Ctrl-C."""
    home.own()
    folder = home.root / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    show_killed(home)
    pages = f"{address.url(mlflow_port)}/{experiment_page(home)}"
    prefect, url = start_server(folder, prefect_port, log, address)
    mlflow = _start_mlflow(home, mlflow_port, address)
    try:
        wait_until_ready(prefect, url, log)
        show_crashed(home, url, address.key)
        print(f"Prefect: {url.removesuffix('/api')}\nMLflow:  {pages}\nCtrl-C ends both.", flush=True)
        if address.password:
            print(f"MLflow asks for the user {USER} and the password; Prefect for both as {USER}:PASSWORD.", flush=True)
        while prefect.poll() is None and mlflow.poll() is None:
            time.sleep(0.5)
    finally:
        for server in (prefect, mlflow):
            end(server)


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
