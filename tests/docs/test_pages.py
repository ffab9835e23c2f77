"""The pages hold together: links lead somewhere, the index links to every page, and the README stays short."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links

DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        place = (page.parent / name).resolve() if name else page
        assert place.exists(), link
        if anchor:
            assert anchor in anchors(place), link


def test_the_index_lists_every_page_and_each_picture_is_shown() -> None:
    index = DOCS / "README.md"
    assert set(DOCS.rglob("*.md")) - {index} <= {(DOCS / link).resolve() for link in links(index)}
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page)}
    assert set(DOCS.glob("*.png")) <= shown, "a picture that no page shows"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 120
