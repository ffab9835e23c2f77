"""Post the short report to a webhook. A failure to post it is logged and never fails the night."""

import logging
import os
import ssl

import httpx

from conf.storage.home import InputError

WEBHOOK_LIMIT = 20.0  # seconds
VARIABLE = "NIGHTSCHOOL_WEBHOOK"  # of the environment

log = logging.getLogger("nightschool")


def webhook() -> str:
    """Return the webhook's URL, or "" if there is none. If it is not a URL, raise InputError without quoting it."""
    url = os.environ.get(VARIABLE, "")
    if url and not url.startswith(("http://", "https://")):
        raise InputError(f"{VARIABLE} holds no http:// or https:// URL; set it to the webhook's URL, or unset it")
    return url


def post_report(text: str, limit: float = WEBHOOK_LIMIT) -> None:
    """If there is a webhook, post a text as `{"text": …}`, as Slack, Mattermost, Rocket.Chat and Google Chat accept it.

    `limit`: the timeout in seconds. Redirects are not followed. A failure is logged in one line, without the URL, which
    may be secret.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # httpx logs URLs at lower levels
    try:
        if not (url := webhook()):
            return
        trusted = ssl.create_default_context()  # the system's certificates, not httpx's own
        answer = httpx.post(url, json={"text": text}, timeout=limit, verify=trusted)
        why = "" if answer.is_success else f"HTTP {answer.status_code}"
    except InputError as error:
        log.warning("%s", error)
        return
    except Exception as error:  # whatever the client raises: bad URL, proxy, host name or certificate
        why = type(error).__name__
    if why:
        log.warning("the webhook of %s did not accept the morning report: %s", VARIABLE, why)
