"""The servers that a night is told to use: they must answer, and be of the version that the program speaks with."""

import os
from importlib.metadata import version as installed

import httpx

from conf.home import InputError
from conf.urls import struck

PATIENCE = 10.0  # seconds


def check_mlflow(uri: str) -> None:
    """Raises InputError where an MLflow server does not answer, or is of another major version. A database is none.

    The first calls of a night would otherwise be refused one by one, each after minutes of further tries.
    """
    if not uri.startswith("http"):
        return
    name, password = os.environ.get("MLFLOW_TRACKING_USERNAME"), os.environ.get("MLFLOW_TRACKING_PASSWORD")
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    _check(
        "MLflow",
        f"{uri.rstrip('/')}/version",
        installed("mlflow"),
        auth=(name, password) if name and password else None,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        verify=os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() not in ("true", "1"),
    )


def check_prefect(url: str) -> None:
    """The same of a Prefect server, given its API's URL; where none is named, the night brings its own."""
    if not url.startswith("http") or "api.prefect.cloud" in url:  # which speaks every version
        return
    name, colon, password = os.environ.get("PREFECT_API_AUTH_STRING", "").partition(":")
    key = os.environ.get("PREFECT_API_KEY")
    _check(
        "Prefect",
        f"{url.rstrip('/')}/admin/version",
        installed("prefect"),
        auth=(name, password) if colon else None,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        verify=os.environ.get("PREFECT_API_TLS_INSECURE_SKIP_VERIFY", "").lower() not in ("true", "1"),
    )


def _check(what: str, url: str, own: str, **request: object) -> None:
    found = _version(what, url, own, request)
    if found.split(".")[0] != own.split(".")[0]:
        raise InputError(
            f"{what}'s server at {struck(url)} is of version {found[:40]}, and this program speaks that of {own}: "
            f"run a server of version {own.split('.')[0]}, or name another"
        )


def _version(what: str, url: str, own: str, request: dict[str, object]) -> str:
    try:
        answer = httpx.get(url, timeout=PATIENCE, **request)  # pyright: ignore[reportArgumentType]
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
