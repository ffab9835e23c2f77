"""URLs that carry a password: refused where they are given, and struck out of what is told."""

import re

from conf.storage.home import InputError

# user:password@ behind ://, where what follows the colon is no port number
PASSWORD = re.compile(r"""(?<=://)([^/?#\s:@"']*):(?!\d{1,5}(?:[/?#\s]|$))[^\s"']*@""")
# a key in a user's place, and parameters that carry one: token, api-key, apikey, access_token, X-Amz-Signature
TOKEN = re.compile(r"""(?<=://)[^/?#\s:@"']{16,}@""")
NAMED = r"[\w-]*password|(?:[\w-]*[_-])?(?:(?:api|access|auth)?(?:key|token)|secret|sig|signature)"
PARAMETER = re.compile(rf"""(?i)([?&](?:{NAMED})=)[^&#\s"',]+""")
MLFLOW = "give them in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (a database's: in PGPASSWORD or its like)"
PREFECT = "give them in PREFECT_API_AUTH_STRING (user:password)"


def struck(text: str) -> str:
    """The text without the passwords and keys of its URLs: `https://me:***@host`."""
    return PARAMETER.sub(r"\1***", TOKEN.sub("***@", PASSWORD.sub(r"\1:***@", text)))


def complaint(url: str, instead: str) -> str | None:
    """What is wrong with a URL that carries a password: it would be written into logs and records. Else None."""
    if struck(url) == url:
        return None
    return f"{struck(url)}: user and password of a URL would be written into the night's records; {instead}"


def checked(url: str, place: str, instead: str) -> str:
    """The URL; raises InputError, in the name of `place`, where it carries a password."""
    if (what := complaint(url, instead)) is not None:
        raise InputError(f"{place}: {what}")
    return url
