"""Refuse passwords and keys in the URLs of settings, and remove them from the URLs in messages."""

import re

from conf.storage.home import InputError

# user:password@ after ://, unless a port number follows the colon
PASSWORD = re.compile(r"""(?<=://)([^/?#\s:@"']*):(?!\d{1,5}(?:[/?#\s]|$))[^\s"']*@""")
# a key in place of the user, and query parameters with a key: token, api-key, apikey, access_token, X-Amz-Signature
TOKEN = re.compile(r"""(?<=://)[^/?#\s:@"']{16,}@""")
NAMED = r"[\w-]*password|(?:[\w-]*[_-])?(?:(?:api|access|auth)?(?:key|token)|secret|sig|signature)"
PARAMETER = re.compile(rf"""(?i)([?&](?:{NAMED})=)[^&#\s"',]+""")
MLFLOW = "give them in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (a database's: in PGPASSWORD or its like)"
PREFECT = "give them in PREFECT_API_AUTH_STRING (user:password)"
ENDPOINT = "give the key in NIGHTSCHOOL_TEACHER_KEY or NIGHTSCHOOL_JUDGE_KEY"


def redact(text: str) -> str:
    """Return the text with the passwords and keys in its URLs replaced by `***`, as in `https://me:***@host`."""
    return PARAMETER.sub(r"\1***", TOKEN.sub("***@", PASSWORD.sub(r"\1:***@", text)))


def refuse_password(url: str, instead: str) -> None:
    """Raise ValueError if a URL contains a password or key, because records, logs and MLflow would store the URL."""
    if redact(url) != url:
        raise ValueError(
            f"{redact(url)}: user and password of a URL would be written into the night's records; {instead}"
        )


def without_password(url: str, source: str, instead: str) -> str:
    """Return the URL unchanged. Raises an InputError that names `source` if the URL contains a password or key."""
    try:
        refuse_password(url, instead)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    return url
