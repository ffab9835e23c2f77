"""Take the classroom's pictures: docs/teach.png, and docs/teach.gif of a lesson.

    NIGHTSCHOOL_HOME=… python -m docs.teach_pictures [QUESTION]

Needs Chromium (Debian: chromium) and a home with a champion. Teaches one lesson, and undoes it.
"""

import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from flows.web.address import free_port

DOCS = Path(__file__).parent
QUESTION = "Write one sentence about the moon."
SIZE = {"width": 1200, "height": 760}
FRAME = 250  # ms
SHOWN = (800, 507)  # pixels of the animated picture


def main() -> None:
    """Start the classroom, teach a lesson, and keep what the page looked like."""
    command = [sys.executable, "-m", "flows", "teach", "--json", "--port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE)
            page.goto(url)
            page.locator("#ask-button:enabled").wait_for()
            time.sleep(30)  # the trainer loads meanwhile
            frames = list(lesson(page, sys.argv[1] if len(sys.argv) > 1 else QUESTION))
            page.keyboard.press("z")
            page.locator("#no-lessons").wait_for()
            browser.close()
    finally:
        process.terminate()
        process.wait()
    first, *rest = [frame.resize(SHOWN, Image.Resampling.LANCZOS).quantize(64) for frame in frames]
    first.save(DOCS / "teach.gif", save_all=True, append_images=rest, duration=FRAME, loop=0, optimize=True)


def lesson(page: Any, question: str) -> Any:
    """Yield the page, four times a second: a question, five answers, a pick, and the question before and after."""
    page.locator("#prompt").press_sequentially(question)
    yield frame(page)
    page.keyboard.press("Enter")
    while page.locator("#answers[aria-busy=false] .answer").count() < 2:
        yield frame(page)
    for _ in range(16):  # time to read
        yield frame(page)
    page.keyboard.press("2")
    while "learned in" not in (page.locator("#status").text_content() or ""):
        yield frame(page)
    page.screenshot(path=DOCS / "teach.png")
    for _ in range(6):
        yield frame(page)
    page.keyboard.press("b")
    page.locator("#before-after:not([hidden])").wait_for()
    for _ in range(16):
        yield frame(page)


def frame(page: Any) -> Image.Image:
    """Return what the page looks like, after a moment."""
    time.sleep(FRAME / 1000)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


if __name__ == "__main__":
    main()
