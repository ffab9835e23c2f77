"""Artifacts of the night on Prefect's pages. A failure to show one is logged and never ends the night."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

RETRIES = 1  # Prefect's default of five would hold up the night for a minute

log = logging.getLogger("nightschool")


def show_text(key: str, markdown: str, description: str) -> None:
    """Show Markdown as an artifact of this run."""
    _show(create_markdown_artifact, markdown, key=key, description=description)


def show_link(key: str, url: str, text: str) -> None:
    """Show a link as an artifact of this run."""
    _show(create_link_artifact, url, key=key, link_text=text, description=f"{text[0].upper()}{text[1:]}")


def show_table(key: str, rows: Sequence[Mapping[str, Any]], description: str) -> None:
    """Show rows as a table."""
    _show(create_table_artifact, [dict(row) for row in rows], key=key, description=description)


def _show(create: Callable[..., Any], content: Any, *, key: str, **described: str) -> None:
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
            create(content, key=key, **described)
    except Exception as error:  # a server may fail in any way
        log.warning("the artifact %s could not be shown in Prefect: %s", key, error)
