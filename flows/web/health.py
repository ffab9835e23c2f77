"""Checks, before a night, that Prefect's server and MLflow's server or database work and have compatible versions."""

import shlex
import sqlite3
from contextlib import closing
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import httpx
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.tracking._tracking_service.utils import get_default_host_creds
from mlflow.utils.rest_utils import http_request
from packaging.version import InvalidVersion, Version

from conf.schema import NightConfig
from conf.sections.redact import redact
from conf.storage.home import Home, InputError
from tasks.monitoring.tracking import tracking_uri
from tasks.registry.mlflow_registry import Registry

TIMEOUT = 10.0  # seconds
SQLITE = "sqlite:///"
INSTEAD = "or unset PREFECT_API_URL: then the night starts a server of its own"


def open_registry(home: Home, config: NightConfig) -> Registry | None:
    """Return a configuration's model registry, or None if the home has no database yet. Never creates a database."""
    uri = tracking_uri(home, config)
    if uri == home.database and not home.database_file.exists():
        return None
    check_mlflow(uri)
    return Registry(MlflowClient(tracking_uri=uri, registry_uri=uri), config.name)


def check_mlflow(uri: str) -> None:
    """Raise InputError if MLflow's server or database at `uri` does not work or has the wrong version."""
    if uri.startswith(SQLITE):
        _check_database(uri, Path(uri.removeprefix(SQLITE)))
    elif uri.startswith("http"):
        _check_mlflow_server(uri)
    else:
        try:
            MlflowClient(tracking_uri=uri, registry_uri=uri).search_registered_models(max_results=1)
        except Exception as error:  # from MLflow or SQLAlchemy
            why = redact(str(error).partition("\n")[0])
            raise InputError(
                f"MLflow: {redact(uri)} cannot be used ({why}); the address of a server begins with http://"
            ) from None


def _check_mlflow_server(uri: str) -> None:
    shown, wanted = f"{redact(uri).rstrip('/')}/version", installed("mlflow")
    try:  # sends the user, password or token in MLflow's environment variables
        answer: Any = http_request(
            get_default_host_creds(uri), "/version", "GET", max_retries=0, raise_on_status=False, timeout=TIMEOUT
        )
    except MlflowException:
        raise InputError(f"MLflow's server does not answer at {shown}: start it, or name another") from None
    if answer.status_code in (401, 403):
        raise InputError(
            f"MLflow's server at {shown} requires a login (HTTP {answer.status_code}): "
            "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    if answer.status_code != 200:
        raise InputError(
            f"{shown} answers with HTTP {answer.status_code}: it is no MLflow {wanted} server; correct the address"
        )
    found, major = answer.text.strip(), wanted.split(".")[0]
    if found.split(".")[0] != major:
        raise InputError(
            f"MLflow's server at {shown} has version {found[:40]}, and this program {wanted}: "
            f"run a server of version {major}, or name another"
        )


def _check_database(uri: str, file: Path) -> None:
    if not file.exists():
        return
    try:  # check here, because MLflow would retry for minutes
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise InputError(
            f"{file}: this database is damaged or cannot be opened ({found.splitlines()[-1]}); correct its "
            "permissions, restore it from a backup, or move it away: then the next night starts from the student's "
            "source"
        )
    try:
        MlflowClient(tracking_uri=uri, registry_uri=uri).search_registered_models(max_results=1)
    except Exception as error:  # from MLflow, SQLAlchemy or Alembic
        why = str(error).partition("\n")[0].partition(". ")[0]
        raise InputError(
            f"{file}: MLflow {installed('mlflow')} does not work with this database ({why}); if an older version made "
            f"it, keep a copy and run `mlflow db upgrade {shlex.quote(uri)}`; if a newer one did, install that one"
        ) from None


def check_prefect(url: str) -> None:
    """Raise InputError unless a compatible Prefect server answers at `url`, the API URL in Prefect's settings.

    A Prefect server supports older clients of the same major version, but not newer ones. Prefect Cloud is not checked.
    """
    if "api.prefect.cloud" in url:
        return
    from prefect.client.orchestration import get_client  # takes 30 MB that a process without a night can do without

    where, client_version = f"PREFECT_API_URL: {url}", Version(installed("prefect"))
    no_server = f"{where} is not the API of a Prefect server, whose address ends with /api; correct it, {INSTEAD}"
    try:
        with get_client(sync_client=True) as client:
            version = Version(client.api_version())
    except httpx.HTTPStatusError as error:
        asks = f"{where} asks for a password: set PREFECT_API_AUTH_STRING=user:password, {INSTEAD}"
        raise InputError(asks if error.response.status_code in (401, 403) else no_server) from None
    except httpx.HTTPError as error:
        raise InputError(f"{where} does not answer ({error or type(error).__name__}); start it, {INSTEAD}") from None
    except (InvalidVersion, TypeError, ValueError):
        raise InputError(no_server) from None
    if version.major != client_version.major or version.minor < client_version.minor:
        raise InputError(
            f"{where} is Prefect {version}, which does not serve a client of {client_version}: make it "
            f"{client_version} or newer (pip install prefect=={client_version}), {INSTEAD}"
        )
