"""What a night shows on Prefect's pages besides its runs. No page is worth a night: a server may be gone by then."""

import logging
from collections.abc import Callable
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

RETRIES = 1  # Prefect's own five take a minute, which the night would wait

log = logging.getLogger("nightschool")


def show_text(key: str, markdown: str, description: str) -> None:
    """Shows a text as an artifact of this run."""
    _show(create_markdown_artifact, markdown, key=key, description=description)


def show_link(key: str, url: str, text: str) -> None:
    """Shows a link as an artifact of this run."""
    _show(create_link_artifact, url, key=key, link_text=text, description=f"{text[0].upper()}{text[1:]}")


def _show(create: Callable[..., Any], content: str, *, key: str, **described: str) -> None:
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
            create(content, key=key, **described)
    except Exception as error:  # whatever a server comes up with
        log.warning("Prefect does not show the artifact %s: %s", key, error)
