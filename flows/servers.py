"""The servers that a night is told to use: they must answer, and be of the version that the program speaks with."""

import os
from importlib.metadata import version as installed

import httpx
import prefect
from packaging.version import InvalidVersion, Version
from prefect.client.orchestration import get_client

from conf.home import InputError
from conf.urls import struck

PATIENCE = 10.0  # seconds
YES = ("true", "1")
INSTEAD = "or unset PREFECT_API_URL: then the night brings a server of its own"


def check_mlflow(uri: str) -> None:
    """Raises InputError where an MLflow server does not answer, or is of another major version. A database is none.

    The first calls of a night would otherwise be refused one by one, each after minutes of further tries.
    """
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
