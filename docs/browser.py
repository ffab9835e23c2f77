"""Chromium without a window, driven by its DevTools protocol (chromedevtools.github.io/devtools-protocol)."""

import base64
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

QUIET = 3  # seconds in which a page's text stays the same: then it is loaded, and nothing fades in any more
LIMIT = 60  # seconds for a page to become quiet
COMMAND = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]
# Clicks the first element that is there: by a selector, or by its whole text.
CLICK = """
(wanted) => {
  const named = (e) => e.textContent.trim() === wanted;
  const found = /^[\\[#.]/.test(wanted) ? document.querySelector(wanted)
    : [...document.querySelectorAll('button, a, [role=tab], label, span')].find(named);
  if (found) found.click();
  return Boolean(found);
}
"""


class Page:
    """A page of the browser, of any size, in light or dark."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._sent = connection, 0

    def show(self, url: str, width: int, height: int, dark: bool) -> None:
        """Goes to a URL, in a window of so many pixels, and waits until the page is quiet."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url="about:blank")  # another #place of the same page would not be loaded
        self._call("Page.navigate", url=url)
        self._wait()

    def click(self, wanted: str) -> bool:
        """Clicks what has this text, or what a selector (`[…]`, `#…`, `.…`) finds. Returns whether it was there."""
        found = self._evaluate(f"({CLICK})({json.dumps(wanted)})")
        self._wait()
        return bool(found)

    def photograph(self, file: Path) -> None:
        """Writes what is to be seen, as PNG."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _wait(self) -> None:
        began = since = time.monotonic()
        text = None
        while time.monotonic() - since < QUIET and time.monotonic() - began < LIMIT:
            time.sleep(0.5)
            now = self._evaluate("document.readyState + document.body?.innerText")
            if now != text:
                text, since = now, time.monotonic()

    def _evaluate(self, expression: str) -> Any:
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def _call(self, method: str, **given: Any) -> dict[str, Any]:
        self._sent += 1
        self._connection.send(json.dumps({"id": self._sent, "method": method, "params": given}))
        while True:
            answer = json.loads(self._connection.recv(timeout=LIMIT))
            if answer.get("id") == self._sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]


@contextmanager
def browser() -> Iterator[Page]:
    """A page of a browser with a profile of its own, which ends with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [*COMMAND, f"--user-data-dir={profile}", "about:blank"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            place = _page_of(Path(profile) / "DevToolsActivePort")
            with connect(place, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            started.terminate()
            started.wait()


def _page_of(note: Path) -> str:
    """The address of the browser's only page, once the browser has noted its port."""
    limit = time.monotonic() + LIMIT
    while not (note.exists() and note.read_text().strip()):
        if time.monotonic() > limit:
            raise TimeoutError("chromium did not start (Debian: apt-get install chromium)")
        time.sleep(0.2)
    port = note.read_text().split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=LIMIT) as answer:
        return next(page["webSocketDebuggerUrl"] for page in json.load(answer) if page["type"] == "page")
