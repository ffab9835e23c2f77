"""The morning's word to the owner: the report in short, posted to a webhook, and never a reason for a night to fail."""

import json
import logging
import os
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from conf.home import InputError

LIMIT = 20.0  # seconds
PLACE = "morning.webhook_variable"

log = logging.getLogger("nightschool")


class _Stays(HTTPRedirectHandler):
    """Follows no redirect: the text would be lost, for a POST that is sent elsewhere becomes a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def webhook(variable: str) -> str:
    """The URL that the environment variable holds. Raises InputError, which does not repeat it, where it is none."""
    url = os.environ.get(variable, "")
    if not url.startswith(("http://", "https://")):
        state = "holds no http:// or https:// URL" if url else "is not set"
        raise InputError(f"{PLACE}: {variable} {state}; set it to the webhook's URL, or {PLACE} to null")
    return url


def tell_morning(variable: str, text: str, limit: float = LIMIT) -> None:
    """Posts `{"text": …}`, as Slack, Mattermost, Rocket.Chat and Google Chat take it; waits `limit` seconds at most.

    What goes wrong is one line in the log, without the URL: it may be a key.
    """
    try:
        body = json.dumps({"text": text}).encode()
        request = Request(webhook(variable), body, {"Content-Type": "application/json; charset=utf-8"}, method="POST")
        with build_opener(_Stays).open(request, timeout=limit):
            return
    except InputError as error:
        log.warning("%s", error)
        return
    except HTTPError as error:
        why = f"HTTP {error.code}"
    except URLError as error:
        why = str(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        why = type(error).__name__
    log.warning("%s: the webhook of %s did not take the morning report: %s", PLACE, variable, why)
