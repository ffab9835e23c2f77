"""Prefect's and MLflow's pages of a home, on loopback."""

import os
import subprocess
import sys
import time

from conf.home import Home
from flows.crashed_runs import show_crashed, show_killed
from flows.prefect_server import start_server, wait_until_ready
from tasks.workers import die_with_parent


def serve(home: Home, prefect_port: int, mlflow_port: int) -> None:
    """Starts both servers, prints where they are, and ends them with Ctrl-C."""
    folder = home.root / "prefect"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    show_killed(home)
    pages = f"http://127.0.0.1:{mlflow_port}/{experiment_page(home)}"
    prefect, url = start_server(folder, prefect_port, log)
    mlflow = _start_mlflow(home, mlflow_port)
    try:
        wait_until_ready(prefect, url, log)
        show_crashed(home, url)
        print(f"Prefect: {url.removesuffix('/api')}\nMLflow:  {pages}\nCtrl-C ends both.", flush=True)
        while prefect.poll() is None and mlflow.poll() is None:
            time.sleep(0.5)
    finally:
        for server in (prefect, mlflow):
            server.kill()
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


def _start_mlflow(home: Home, port: int) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", home.database]
    command += ["--default-artifact-root", (home.root / "mlartifacts").as_uri()]
    with (home.root / "mlflow.log").open("ab") as output:
        return subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),
        )
