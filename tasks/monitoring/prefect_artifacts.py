"""Show the night's artifacts in Prefect. A failure to show one is logged and never ends the night."""

import logging
from collections.abc import Callable
from typing import Any

from prefect.artifacts import create_markdown_artifact
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

RETRIES = 1  # Prefect's default of five would hold up the night for a minute

log = logging.getLogger("nightschool")


def show(create: Callable[..., Any], key: str, description: str, **content: Any) -> None:
    """Create an artifact of this flow run. `create`: one of the functions in `prefect.artifacts`."""
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
            create(key=key, description=description, **content)
    except Exception as error:  # a server may fail in any way
        log.warning("the artifact %s could not be shown in Prefect: %s", key, error)


def show_text(key: str, markdown: str, description: str) -> None:
    """Show Markdown as an artifact of this flow run."""
    show(create_markdown_artifact, key, description, markdown=markdown)
