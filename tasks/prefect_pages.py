"""What a night shows on Prefect's pages besides its runs. No page is worth a night: a server may be gone by then."""

import logging

from prefect.artifacts import create_link_artifact, create_markdown_artifact

log = logging.getLogger("nightschool")


def show_text(key: str, markdown: str, description: str) -> None:
    """Shows a text as an artifact of this run."""
    try:
        create_markdown_artifact(markdown, key=key, description=description)
    except Exception as error:  # whatever a server comes up with
        log.warning("Prefect does not show the artifact %s: %s", key, error)


def show_link(key: str, url: str, text: str) -> None:
    """Shows a link as an artifact of this run."""
    try:
        create_link_artifact(url, key=key, link_text=text, description=f"{text[0].upper()}{text[1:]}")
    except Exception as error:
        log.warning("Prefect does not show the artifact %s: %s", key, error)
