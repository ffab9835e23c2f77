"""The servers that a night is told to use: they must answer, and be of the version that the program speaks with."""

import os
from importlib.metadata import version as installed

import httpx

from conf.home import InputError
from conf.urls import struck

PATIENCE = 10.0  # seconds
YES = ("true", "1")


def check_mlflow(uri: str) -> None:
    """Raises InputError where an MLflow server does not answer, or is of another major version. A database is none.

    The first calls of a night would otherwise be refused one by one, each after minutes of further tries.
    """
    if not uri.startswith("http"):
        return
    name, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD")
    insecure = os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in YES
    with httpx.Client(
        auth=(name, password) if name and password else None,
        headers=_bearer("MLFLOW_TRACKING_TOKEN"),
        verify=not insecure,
        timeout=PATIENCE,
    ) as client:
        _check("MLflow", client, f"{uri.rstrip('/')}/version", installed("mlflow"))


def check_prefect(url: str) -> None:
    """The same of a Prefect server, given its API's URL; where none is named, the night brings its own."""
    if not url.startswith("http") or "api.prefect.cloud" in url:  # which speaks every version
        return
    name, colon, password = os.environ.get("PREFECT_API_AUTH_STRING", "").partition(":")
    insecure = os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "").lower() in YES
    with httpx.Client(
        auth=(name, password) if colon else None,
        headers=_bearer("PREFECT_API_KEY"),
        verify=not insecure,
        timeout=PATIENCE,
    ) as client:
        _check("Prefect", client, f"{url.rstrip('/')}/admin/version", installed("prefect"))


def _bearer(variable: str) -> dict[str, str]:
    key = os.environ.get(variable)
    return {"Authorization": f"Bearer {key}"} if key else {}


def _check(what: str, client: httpx.Client, url: str, own: str) -> None:
    found = _version(what, client, url, own)
    major = own.split(".")[0]
    if found.split(".")[0] != major:
        raise InputError(
            f"{what}'s server at {struck(url)} is of version {found[:40]}, and this program speaks that of {own}: "
            f"run a server of version {major}, or name another"
        )


def _version(what: str, client: httpx.Client, url: str, own: str) -> str:
    try:
        answer = client.get(url)
    except httpx.HTTPError as error:
        raise InputError(
            f"{what}'s server does not answer at {struck(url)} ({type(error).__name__}): start it, or name another"
        ) from None
    if answer.status_code in (401, 403):
        raise InputError(f"{what}'s server at {struck(url)} lets nobody in who has no key (HTTP {answer.status_code})")
    if answer.status_code != httpx.codes.OK:
        raise InputError(
            f"{struck(url)} answers with HTTP {answer.status_code}: there is no {what} server of version {own} there"
        )
    return answer.text.strip().strip('"')
