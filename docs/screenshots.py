"""Take the pictures of README and docs from a real home.

    NIGHTSCHOOL_HOME=… python -m docs.screenshots [DATE]

Needs Chromium (Debian: chromium) and a home with two finished nights; that of DATE is shown, or the last. Of a night of
ants, only the episode in its report is shown, turn by turn. The home is not changed.
"""

import io
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from conf.load import load_night
from conf.storage.home import Home
from flows.run.history import last_report
from flows.web.address import LOOPBACK, free_port
from tasks.monitoring.tracking import NIGHT_RUNS, TRAINING_VIEW, Tracking

DOCS = Path(__file__).parent
CHARTS = f"{TRAINING_VIEW}&compareRunsMode=CHART"
QUIET, LIMIT = 3.0, 60.0  # seconds
ASSISTANT = "[data-component-id='mlflow.assistant.chat_panel.close']"  # MLflow's, which takes a third of the page


@dataclass(frozen=True)
class Picture:
    """A page to photograph: the file's name, the address, and the window's size in pixels.

    `clicks`: what to click first, in order, where it is there. `search`: the metrics to show, as MLflow searches them.
    """

    name: str
    url: str
    width: int = 1400
    height: int = 1000
    clicks: tuple[str, ...] = ()
    search: str = ""


def main() -> None:
    """Serve the pages of the home and photograph them."""
    home = Home.here()
    report = last_report(home, sys.argv[1] if len(sys.argv) > 1 else None)
    if 'id="episode"' in report.read_text():
        with _browser() as browser:
            film_episode(report, browser)
        return
    with _pages() as (prefect, mlflow), _browser() as browser:
        runs = _runs(home, report)
        flow_run = f"{prefect}/runs/flow-run/{runs[0].data.tags['prefect.flow_run']}"
        pictures = [
            Picture("report", report.as_uri(), 1200, 1500),
            Picture("prefect", flow_run, 1100, 800),
            *of_mlflow(runs[0].info.experiment_id, load_night(report.parent / "config.yaml").name, mlflow),
        ]
        for picture in pictures:
            shoot(picture, browser)
            print(DOCS / f"{picture.name}.png")


def of_mlflow(experiment: str, model: str, server: str) -> list[Picture]:
    """The nights side by side, and the registered checkpoints."""
    page = f"{server}/#/experiments/{experiment}"
    return [
        Picture(
            "mlflow-compared", f"{page}/runs?{CHARTS}", clicks=(ASSISTANT,), search="^reward/(reward|signal_share)"
        ),
        Picture("mlflow-versions", f"{server}/#/models/{model}", clicks=(ASSISTANT,)),
    ]


def shoot(picture: Picture, browser: Browser) -> None:
    """Take the picture, in a window of its own."""
    page = browser.new_page(viewport={"width": picture.width, "height": picture.height})
    page.goto(picture.url)
    wait_until_quiet(page)
    for wanted in picture.clicks:
        named = wanted[0] in "[#."
        found = page.locator(wanted) if named else page.get_by_text(wanted, exact=True)
        if found.count():
            found.first.click()
            wait_until_quiet(page)
    if picture.search:
        page.get_by_placeholder("Search metric charts").fill(picture.search)
        wait_until_quiet(page)
    with Image.open(io.BytesIO(page.screenshot())) as taken:
        drawn = taken.quantize(256)  # a quarter of the size, without a visible difference
    drawn.save(DOCS / f"{picture.name}.png", optimize=True)
    page.close()


def film_episode(report: Path, browser: Browser) -> None:
    """Keep the report's episode as an animated picture, with a second for each turn."""
    page = browser.new_page(viewport={"width": 1200, "height": 520})
    page.goto(f"{report.as_uri()}#episode")
    frames = []
    for turn in page.locator(".episode label").all():
        turn.click()
        taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append(taken.resize((800, 347), Image.Resampling.LANCZOS).quantize(32))
    frames[0].save(
        DOCS / "ants-episode.gif", save_all=True, append_images=frames[1:], duration=1000, loop=0, optimize=True
    )
    page.close()


def wait_until_quiet(page: Page) -> None:
    """Wait until the page's text has not changed for `QUIET` seconds: pages that poll are never idle."""
    began = since = time.monotonic()
    text = None
    while time.monotonic() - since < QUIET and time.monotonic() - began < LIMIT:
        page.wait_for_timeout(500)
        now = page.locator("body").inner_text()
        if now != text:
            text, since = now, time.monotonic()


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def _pages() -> Iterator[tuple[str, str]]:
    """Run Prefect's and MLflow's servers by `nightschool ui`, and yield their addresses."""
    ports = free_port(), free_port()
    command = ["ui", "--prefect-port", str(ports[0]), "--mlflow-port", str(ports[1])]
    served = subprocess.Popen([sys.executable, "-m", "flows", *command])
    try:
        prefect, mlflow = (f"http://{LOOPBACK}:{port}" for port in ports)
        _wait(f"{prefect}/api/health")
        _wait(f"{mlflow}/health")
        yield prefect, mlflow
    finally:
        served.terminate()
        served.wait()


def _runs(home: Home, report: Path) -> list[Any]:
    """Return the finished nights in MLflow up to the report's, the newest first."""
    tracking = Tracking(home, load_night(report.parent / "config.yaml"))
    runs = tracking.client.search_runs(
        [tracking.experiment_id], f"attributes.status = 'FINISHED' and {NIGHT_RUNS}", order_by=["start_time DESC"]
    )
    return [run for run in runs if run.data.tags["night"] <= report.parent.name]


def _wait(url: str, seconds: float = 180) -> None:
    """Wait until a server answers."""
    limit = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(1)


if __name__ == "__main__":
    main()
