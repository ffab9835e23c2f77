"""Post the short report to a webhook. A failure to post it is logged and never fails the night."""

import logging
import os
import ssl

import httpx

from conf.storage.home import InputError

WEBHOOK_LIMIT = 20.0  # seconds
KEY = "morning.webhook_variable"

log = logging.getLogger("nightschool")


def webhook(variable: str) -> str:
    """Return the URL in an environment variable. If the value is not a URL, raise InputError without quoting it."""
    url = os.environ.get(variable, "")
    if not url.startswith(("http://", "https://")):
        state = "holds no http:// or https:// URL" if url else "is not set"
        raise InputError(f"{KEY}: {variable} {state}; set it to the webhook's URL, or {KEY} to null")
    return url


def post_report(variable: str, text: str, limit: float = WEBHOOK_LIMIT) -> None:
    """Post a text as `{"text": …}`, the format that Slack, Mattermost, Rocket.Chat and Google Chat accept.

    `variable`: the environment variable that holds the webhook's URL. `limit`: the timeout in seconds. Redirects are
    not followed. A failure is logged in one line, without the URL, which may be secret.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # httpx logs URLs at lower levels
    try:
        url, trusted = webhook(variable), ssl.create_default_context()  # the system's certificates, not httpx's own
        answer = httpx.post(url, json={"text": text}, timeout=limit, verify=trusted)
        why = "" if answer.is_success else f"HTTP {answer.status_code}"
    except InputError as error:
        log.warning("%s", error)
        return
    except Exception as error:  # whatever the client raises: bad URL, proxy, host name or certificate
        why = type(error).__name__
    if why:
        log.warning("%s: the webhook of %s did not accept the morning report: %s", KEY, variable, why)
