"""`nightschool ui` and `nightschool services`: serve a home's pages and, with `services`, run its scheduled nights."""

import signal
from typing import Annotated

import typer

from conf.storage.home import Home
from flows.commands.options import configuration
from flows.web.address import LOOPBACK, MLFLOW_PORT, PREFECT_PORT, named_address

PrefectPort = Annotated[int, typer.Option(help="port of Prefect's pages", min=1, max=65535)]
MlflowPort = Annotated[int, typer.Option(help="port of MLflow's pages", min=1, max=65535)]
Host = Annotated[str, typer.Option(help="address; any but loopback asks for the password in NIGHTSCHOOL_UI_PASSWORD")]


def ui(prefect_port: PrefectPort = PREFECT_PORT, mlflow_port: MlflowPort = MLFLOW_PORT, host: Host = LOOPBACK) -> None:
    """Serve this home's Prefect and MLflow pages until Ctrl-C, by default to this machine only."""
    home, address = Home.here(), named_address(host)
    from flows.web.pages import pages, wait_for_end  # after the first checks: the libraries take seconds to import

    with pages(home, prefect_port, mlflow_port, address) as (_, servers):
        print("Ctrl-C ends both.", flush=True)
        wait_for_end(servers)


def services(
    prefect_port: PrefectPort = PREFECT_PORT, mlflow_port: MlflowPort = MLFLOW_PORT, host: Host = LOOPBACK
) -> None:
    """Serve the same pages as `ui`, and run this home's nights on the schedule in prefect.yaml, until Ctrl-C."""
    home, address = Home.here(), named_address(host)
    configuration(None, None)  # what is wrong in it is said here, not in a log
    from flows.orchestration import worker
    from flows.web.pages import pages, wait_for_end

    with pages(home, prefect_port, mlflow_port, address, idle=()) as (api, servers):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # shut down cleanly for systemd and kill, too
        with worker.working(home, api, address.key) as at_work:
            print("Ctrl-C ends all of it; a running night resumes when this is started again.", flush=True)
            wait_for_end({**servers, "the worker": at_work})
