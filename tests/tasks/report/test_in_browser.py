"""The morning report in a real browser: on a desk, on a phone and on paper, in light and dark."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tasks.report import page as report_page
from tasks.report.episode import shown_episode
from tests.tasks.doubles.night import write_night, write_past_night
from tests.tasks.report.test_episode import write_ants

LONG = "<script>document.title='hacked'</script>" + "1234567890" * 40


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with everything: a night before it, long lines, hostile answers, an episode."""
    folder = tmp_path_factory.mktemp("nights")
    write_past_night(folder / "2026-11-19", 0.3, 0.2, promoted=False)
    summary = write_night(folder / "2026-11-20", rounds=12, groups=16, hostile=LONG)
    (folder / "ants").mkdir()
    write_ants(folder / "ants")
    episode = shown_episode(folder / "ants")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_page, "shown_episode", lambda night: episode)
        text = report_page.render(folder / "2026-11-20", summary | {"alarms": [LONG], "reasons": [LONG]})
    (folder / "report.html").write_text(text)
    return (folder / "report.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_the_page_fits_runs_nothing_and_can_be_read_by_all(browser: Any, file: str, width: int, scheme: Any) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(file)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title().startswith("Night of 20 November 2026")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    frames = page.locator(".episode figure")
    assert [frames.nth(at).is_visible() for at in (0, 1)] == [True, False]
    page.locator("#turn-1").focus()
    page.keyboard.press("ArrowRight")
    assert [frames.nth(at).is_visible() for at in (0, 1)] == [False, True]
    page.close()


def test_paper_has_what_is_closed_and_what_scrolls(browser: Any, file: str) -> None:
    page = browser.new_page(viewport={"width": 700, "height": 900})
    page.goto(file)
    folded = "[...document.querySelectorAll('details > :not(summary)')].map(one => one.checkVisibility())"
    clipped = "[...document.querySelectorAll('.scroll')].map(one => getComputedStyle(one).overflowY)"
    screen = [set(page.evaluate(measure)) for measure in (folded, clipped)]
    page.emulate_media(media="print")
    paper = [set(page.evaluate(measure)) for measure in (folded, clipped)]
    assert (screen[0], paper) == ({False}, [{True}, {"visible"}])
    assert screen[1] == {"auto"}
    page.close()
