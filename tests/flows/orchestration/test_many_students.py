"""Two students' nights in one work pool; Prefect and MLflow keep their records in PostgreSQL.

As docs/how-to/many-students.md has it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import yaml
from mlflow import MlflowClient

from conf.load import STARTER, frozen_yaml, load_night
from flows.orchestration.worker import PREFECT, PROJECT
from flows.web.address import free_port
from tests.chaos.school import DATE, open_school
from tests.flows.orchestration.test_schedule import TINY_RUN
from tests.waiting import answers, awaited

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def run(command: Sequence[str], **options: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def rows(database: str, name: str, query: str) -> list[Any]:
    with closing(psycopg2.connect(f"postgresql://{database}/{name}")) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute(query)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """User and address of a PostgreSQL server with the databases `prefect` and `mlflow`."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    folder, port = Path(tempfile.mkdtemp()), free_port()
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    run([*user, f"{PROGRAMS[-1]}/initdb", "-D", f"{folder}/data", "-U", "school", "--auth=trust"])
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    control = [*user, f"{PROGRAMS[-1]}/pg_ctl", "-D", f"{folder}/data", "-w", "-m", "fast"]
    subprocess.run([*control, "-l", f"{folder}/log", "-o", options, "start"], check=True, stdout=subprocess.DEVNULL)
    found = f"school@127.0.0.1:{port}"
    for name in ("prefect", "mlflow"):
        rows(found, "postgres", f"CREATE DATABASE {name}")
    yield found
    run([*control, "stop"])
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def servers(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Prefect's server, MLflow's, and a worker; the environment in which commands find them."""
    folder, prefect, mlflow = tmp_path_factory.mktemp("servers"), free_port(), free_port()
    environment = os.environ | {
        "DO_NOT_TRACK": "1",
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{prefect}/api",
        "PREFECT_API_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{database}/prefect",
        "MLFLOW_TRACKING_URI": f"http://127.0.0.1:{mlflow}",
        "PWD": str(PROJECT),
        "OMP_NUM_THREADS": "1",
    }
    stores = [f"--backend-store-uri=postgresql://{database}/mlflow", f"--artifacts-destination={folder}/artifacts"]
    commands = [
        [*PREFECT, "server", "start", "--port", str(prefect)],
        [sys.executable, "-m", "mlflow", "server", "--port", str(mlflow), "--workers", "1", *stores],
        [*PREFECT, "worker", "start", "--pool", "nightschool", "--type", "process", "--limit", "1"],
    ]
    with (folder / "log").open("ab") as log:
        options: Any = {"env": environment, "cwd": PROJECT, "stdout": log, "stderr": log}
        running = [subprocess.Popen(command, **options) for command in commands[:2]]
        for url in (f"{environment['PREFECT_API_URL']}/health", f"{environment['MLFLOW_TRACKING_URI']}/health"):
            awaited(lambda url=url: answers(url), url, 120)
        running.append(subprocess.Popen(commands[2], **options))
        yield environment
        for process in reversed(running):
            process.terminate()
            process.wait()


def test_two_homes_share_a_pool_and_two_databases(servers: dict[str, str], database: str, tmp_path: Path) -> None:
    school = open_school(tmp_path / "tiny", None)
    homes = {name: school.home(name) for name in ("ada", "bert")}
    students = {
        "pull": [{"prefect.deployments.steps.set_working_directory": {"directory": str(PROJECT)}}],
        "deployments": [deployment(name, home.root, tmp_path, school.settings) for name, home in homes.items()],
    }
    (tmp_path / "students.yaml").write_text(yaml.safe_dump(students))
    deploy = [*PREFECT, "--no-prompt", "deploy", "--all", "--prefect-file", str(tmp_path / "students.yaml")]
    run(deploy, env=servers, cwd=PROJECT)
    for name in homes:
        run([*PREFECT, "deployment", "run", f"nightly/{name}", "-p", f"date={DATE}"], env=servers)
    summaries = [home.night(DATE) / "summary.json" for home in homes.values()]
    awaited(lambda: all(summary.exists() for summary in summaries), "summary of both nights", 600)
    completed = "SELECT count(*) FROM flow_run WHERE parent_task_run_id IS NULL AND state_type = 'COMPLETED'"
    awaited(lambda: rows(database, "prefect", completed) == [(2,)], "end of both flow runs", 60)
    models = MlflowClient(servers["MLFLOW_TRACKING_URI"]).search_registered_models()
    assert {model.name for model in models} == {*homes}
    assert {name for (name,) in rows(database, "mlflow", "SELECT name FROM registered_models")} == {*homes}


def deployment(name: str, home: Path, folder: Path, settings: Sequence[str]) -> dict[str, Any]:
    """Return a student's deployment, with the tiny engine; its configuration is written."""
    config = load_night(STARTER, [f"name={name}", "budget_minutes=null", *settings])
    (folder / f"{name}.yaml").write_text(frozen_yaml(config))
    variables = {"command": TINY_RUN, "env": {"NIGHTSCHOOL_HOME": str(home)}}
    return {
        "name": name,
        "entrypoint": "flows/nightly.py:nightly",
        "build": [{"flows.orchestration.deployment.night_values": {"file": str(folder / f"{name}.yaml")}}],
        "parameters": {"config": "{{ config }}"},
        "work_pool": {"name": "nightschool", "job_variables": variables},
    }
