"""Whether a Prefect server that is configured is one to work with."""

import prefect
from httpx import HTTPError, HTTPStatusError
from packaging.version import InvalidVersion, Version
from prefect.client.orchestration import get_client

from conf.home import InputError

INSTEAD = "or unset PREFECT_API_URL: then the night brings a server of its own"


def check_server(url: str) -> None:
    """Asks the server at `url`, which Prefect's settings name, for its version.

    It must be of the client's major version, and of no older minor one: Prefect's servers serve older clients, and not
    newer ones. Raises InputError, also where no Prefect server answers.
    """
    place, own = f"PREFECT_API_URL: {url}", Version(prefect.__version__)
    try:
        with get_client(sync_client=True) as client:
            version = Version(client.api_version())
    except HTTPStatusError as error:
        if error.response.status_code == 401:
            raise InputError(
                f"{place} wants a password: set PREFECT_API_AUTH_STRING=user:password, {INSTEAD}"
            ) from None
        raise _no_server(place) from None
    except HTTPError as error:
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
