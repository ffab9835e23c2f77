"""Show the night's artifacts in Prefect. A failure to show one is logged and never fails the night."""

import logging

from prefect.artifacts import create_markdown_artifact
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

RETRIES = 1  # Prefect's default of five would hold up the night for a minute

log = logging.getLogger("nightschool")


def show_text(key: str, markdown: str, description: str) -> None:
    """Show a Markdown text as an artifact of the current flow run. `key`: the artifact's name in Prefect."""
    try:
        with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}):
            create_markdown_artifact(key=key, description=description, markdown=markdown)
    except Exception as error:  # a server may fail in any way
        log.warning("the artifact %s could not be shown in Prefect: %s", key, error)
