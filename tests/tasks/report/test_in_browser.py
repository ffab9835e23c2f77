"""The morning report in a real browser, on a desk and on a phone."""

import html
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tasks.report.page import render
from tests.tasks.doubles.night import write_night

Night = tuple[Path, dict[str, Any]]

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)"
)


def measured(folder: Path, page: str, width: int, measure: str) -> list[str]:
    """Show the page in a frame of this width and return what `measure` finds, cut at each `~`.

    `measure` is JavaScript that sees the page's document as `d`. A frame, since a headless window cannot be narrower
    than 500 pixels. The browser has no network of its own.
    """
    (folder / "frame.html").write_text(
        f'<body style="margin:0"><iframe style="width:{width}px;height:900px;border:0" srcdoc="{html.escape(page)}" '
        f'onload="d = this.contentDocument; document.title = {html.escape(measure)}"></iframe>'
    )
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'user'}", f"--window-size={max(width, 500)},900"]
    command.append(f"file://{folder / 'frame.html'}")
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    title = re.search(r"<title>(.*?)</title>", shown)
    assert title is not None
    return html.unescape(title.group(1)).split("~")


@needs_chromium
@pytest.mark.parametrize("width", [1200, 400])
def test_in_a_real_browser_the_page_is_no_wider_than_the_window(
    three_nights: Night, tmp_path: Path, width: int
) -> None:
    long = "<script>document.title='hacked'</script>" + "1234567890" * 40
    night, summary = three_nights
    shutil.rmtree(night)
    summary |= write_night(night, rounds=12, groups=16, hostile=long)
    page = render(night, summary | {"alarms": [long], "reasons": [long]})
    measure = "[d.documentElement.scrollWidth, d.title, d.querySelectorAll('svg text').length].join('~')"
    wide, name, texts = measured(tmp_path, page, width, measure)
    assert int(wide) <= width
    assert name.startswith("Night of 20 November 2026")
    assert int(texts) > 50


@needs_chromium
def test_a_keyboard_finds_the_nights_of_the_history(three_nights: Night, tmp_path: Path) -> None:
    """What is focused, or pointed at, is shown by the style sheet alone: the page may run no script."""
    night, summary = three_nights
    seen = "getComputedStyle(a.querySelector('.tip')).opacity"
    measure = f"[a = d.querySelector('a.reading'), {seen}, a.focus(), {seen}, a.getAttribute('href')].join('~')"
    _, before, _, focused, link = measured(tmp_path, render(night, summary), 1200, measure)
    assert (before, focused) == ("0", "1")
    assert link == "../2026-11-18/report.html"


@needs_chromium
def test_paper_has_what_is_closed_and_what_scrolls(three_nights: Night, tmp_path: Path) -> None:
    """The rules for paper, put on a screen."""
    night, summary = three_nights
    shutil.rmtree(night)
    page = render(night, summary | write_night(night, rounds=12, groups=16))
    folds = (
        "[...d.querySelectorAll('details > :not(summary)')].map(one => one.offsetHeight > 20 && one.checkVisibility())"
    )
    clipped = "[...d.querySelectorAll('.scroll')].map(one => getComputedStyle(one).overflow)"
    measure = f"[{folds}, {clipped}].map(found => [...new Set(found)]).join('~')"
    screen = measured(tmp_path, page, 700, measure)
    paper = measured(tmp_path, page.replace("@media print", "@media all"), 700, measure)
    assert screen == ["false", "auto"]
    assert paper == ["true", "visible"]
