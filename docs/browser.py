"""Headless Chromium, driven by its DevTools protocol (chromedevtools.github.io/devtools-protocol)."""

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

QUIET = 3  # seconds without a change of the text after which a page counts as loaded
LIMIT = 60  # seconds to wait for that
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
# Click the first element that matches a selector or has exactly this text.
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
    """A page of the browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._sent = connection, 0

    def show(self, url: str, width: int, height: int, dark: bool) -> None:
        """Open a URL in a window of this size in pixels, and wait until the page is loaded."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url="about:blank")  # another #place of the same page would not be loaded
        self._call("Page.navigate", url=url)
        self._wait()

    def click(self, wanted: str) -> bool:
        """Click what has this text, or matches a selector (`[…]`, `#…`, `.…`). Return whether it was there."""
        found = self._evaluate(f"({CLICK})({json.dumps(wanted)})")
        self._wait()
        return bool(found)

    def photograph(self, file: Path) -> None:
        """Write a screenshot as PNG."""
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
    """Yield a page of a browser with a temporary profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [*COMMAND, f"--user-data-dir={profile}", "about:blank"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            url = _page_of(Path(profile) / "DevToolsActivePort")
            with connect(url, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            started.terminate()
            started.wait()


def _page_of(port_file: Path) -> str:
    """Return the address of the browser's only page, once the browser has written its port."""
    limit = time.monotonic() + LIMIT
    while not (port_file.exists() and port_file.read_text().strip()):
        if time.monotonic() > limit:
            raise TimeoutError("chromium did not start (Debian: apt-get install chromium)")
        time.sleep(0.2)
    port = port_file.read_text().split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=LIMIT) as answer:
        return next(page["webSocketDebuggerUrl"] for page in json.load(answer) if page["type"] == "page")
