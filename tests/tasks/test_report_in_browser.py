"""The morning report in a real browser, on a desk and on a telephone."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tasks.report_page import render
from tests.tasks.night_folder import write_night

CHROMIUM = shutil.which("chromium")


def chromium(folder: Path, *arguments: str) -> str:
    """Runs the browser without a network of its own and returns what it prints."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--hide-scrollbars", f"--user-data-dir={folder / 'user'}"]
    command = [str(CHROMIUM), *quiet, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)")
@pytest.mark.parametrize("width", [1200, 400])
def test_in_a_real_browser_the_page_is_no_wider_than_the_window(tmp_path: Path, width: int) -> None:
    """The page stands in a frame of that width, because a headless window cannot be narrower than 500 pixels."""
    long = "<script>document.title='hacked'</script>" + "1234567890" * 40
    summary = write_night(tmp_path / "night", rounds=12, groups=16, hostile=long)
    page = render(tmp_path / "night", summary | {"alarms": [long], "reasons": [long]})
    measure = (
        "document.title = [d.documentElement.scrollWidth, d.title, d.querySelectorAll('svg text').length].join('~')"
    )
    (tmp_path / "frame.html").write_text(
        f'<body style="margin:0"><iframe style="width:{width}px;height:900px;border:0" srcdoc="{html.escape(page)}" '
        f'onload="d = this.contentDocument; {measure}"></iframe>'
    )
    picture = tmp_path / f"{width}.png"
    chromium(
        tmp_path, f"--window-size={max(width, 500)},900", f"--screenshot={picture}", f"file://{tmp_path}/frame.html"
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = chromium(tmp_path, f"--window-size={max(width, 500)},900", "--dump-dom", f"file://{tmp_path}/frame.html")
    title = re.search(r"<title>(.*?)</title>", shown)
    assert title is not None
    wide, name, texts = html.unescape(title.group(1)).split("~")
    assert int(wide) <= width
    assert name.startswith("Night of 20 November 2026")
    assert int(texts) > 50
