"""URLs that carry a password: refused where they are given, and struck out of what is told."""

import re

from conf.home import InputError

# user:password@ behind ://, where what follows the colon is no port number
PASSWORD = re.compile(r"""(?<=://)([^/?#\s:@"']*):(?!\d{1,5}(?:[/?#\s]|$))[^\s"']*@""")
MLFLOW = "give them in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (a database's: in PGPASSWORD or its like)"
PREFECT = "give them in PREFECT_API_AUTH_STRING (user:password)"


def struck(text: str) -> str:
    """The text without the passwords of its URLs: `https://me:***@host`."""
    return PASSWORD.sub(r"\1:***@", text)


def complaint(url: str, instead: str) -> str | None:
    """What is wrong with a URL that carries a password: it would be written into logs and records. Else None."""
    if PASSWORD.search(url) is None:
        return None
    return f"{struck(url)}: user and password of a URL would be written into the night's records; {instead}"


def checked(url: str, place: str, instead: str) -> str:
    """The URL; raises InputError, in the name of `place`, where it carries a password."""
    if (what := complaint(url, instead)) is not None:
        raise InputError(f"{place}: {what}")
    return url
