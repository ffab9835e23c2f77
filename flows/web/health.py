"""What keeps a night's books: servers must answer, a database must open, each of the version that the program has."""

import os
import shlex
import sqlite3
from contextlib import closing
from importlib.metadata import version as installed
from pathlib import Path

import httpx
import prefect
from mlflow import MlflowClient
from packaging.version import InvalidVersion, Version
from prefect.client.orchestration import get_client

from conf.redact import struck
from conf.storage.home import InputError

PATIENCE = 10.0  # seconds
YES = ("true", "1")
SQLITE = "sqlite:///"
INSTEAD = "or unset PREFECT_API_URL: then the night brings a server of its own"


def check_mlflow(uri: str) -> None:
    """Raises InputError where an MLflow server does not answer, or is of another major version; or a database likewise.

    The first calls of a night would otherwise be refused one by one, each after minutes of further tries.
    """
    if uri.startswith(SQLITE):
        _check_database(uri, Path(uri.removeprefix(SQLITE)))
    if not uri.startswith("http"):
        return
    name, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD")
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    insecure = os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in YES
    address, own = f"{uri.rstrip('/')}/version", installed("mlflow")
    with httpx.Client(
        auth=(name, password) if name and password else None,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        verify=not insecure,
        timeout=PATIENCE,
    ) as client:
        found, major = _version(client, address, own), own.split(".")[0]
    if found.split(".")[0] != major:
        raise InputError(
            f"MLflow's server at {struck(address)} is of version {found[:40]}, and this program speaks that of {own}: "
            f"run a server of version {major}, or name another"
        )


def _check_database(uri: str, file: Path) -> None:
    """Opens an SQLite database, if there is one. MLflow alone would try for minutes to open what cannot be opened.

    Nothing is opened twice: MLflow keeps what it has opened.
    """
    if not file.exists():
        return
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as database:
            (found,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        raise InputError(
            f"{file}: this database cannot be opened ({error}); see what holds it, or its rights"
        ) from None
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise InputError(
            f"{file}: this database is damaged ({found.splitlines()[-1]}); bring it back from a backup, or move it "
            "away: then the next night begins another one, with the student as it comes"
        )
    try:
        MlflowClient(tracking_uri=uri, registry_uri=uri).search_registered_models(max_results=1)
    except Exception as error:  # of MLflow, SQLAlchemy or Alembic
        why = str(error).partition("\n")[0].partition(". ")[0]
        raise InputError(
            f"{file}: MLflow {installed('mlflow')} does not work with this database ({why}); if an older version made "
            f"it, keep a copy and run `mlflow db upgrade {shlex.quote(uri)}`; if a newer one did, go on with that"
        ) from None


def check_prefect(url: str) -> None:
    """Asks the Prefect server at `url`, which Prefect's settings name, for its version.

    It must be of the client's major version, and of no older minor one: Prefect's servers serve older clients, and not
    newer ones; Prefect's Cloud serves all. Raises InputError, also where no Prefect server answers.
    """
    if "api.prefect.cloud" in url:
        return
    place, own = f"PREFECT_API_URL: {url}", Version(prefect.__version__)
    try:
        with get_client(sync_client=True) as client:
            version = Version(client.api_version())
    except httpx.HTTPStatusError as error:
        if error.response.status_code in (401, 403):
            raise InputError(
                f"{place} wants a password: set PREFECT_API_AUTH_STRING=user:password, {INSTEAD}"
            ) from None
        raise _no_server(place) from None
    except httpx.HTTPError as error:
        raise InputError(f"{place} does not answer ({error or type(error).__name__}); start it, {INSTEAD}") from None
    except (InvalidVersion, TypeError, ValueError):
        raise _no_server(place) from None
    if version.major != own.major or version < Version(f"{own.major}.{own.minor}"):
        raise InputError(
            f"{place} is Prefect {version}, which does not serve a client of {own}: make it {own} or newer "
            f"(pip install prefect=={own}), {INSTEAD}"
        )


def _no_server(place: str) -> InputError:
    return InputError(f"{place} is not the API of a Prefect server, whose address ends with /api; mend it, {INSTEAD}")


def _version(client: httpx.Client, url: str, own: str) -> str:
    """What MLflow's server says of its version. Raises InputError where it says nothing."""
    try:
        answer = client.get(url)
    except httpx.HTTPError as error:
        raise InputError(
            f"MLflow's server does not answer at {struck(url)} ({type(error).__name__}): start it, or name another"
        ) from None
    if answer.status_code in (401, 403):
        raise InputError(f"MLflow's server at {struck(url)} lets nobody in who has no key (HTTP {answer.status_code})")
    if answer.status_code != httpx.codes.OK:
        raise InputError(
            f"{struck(url)} answers with HTTP {answer.status_code}: there is no MLflow server of version {own} there"
        )
    return answer.text.strip()
