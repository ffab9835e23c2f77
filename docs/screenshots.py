"""Takes the pictures of README and docs from a real home, and writes docs/tour.md, which shows them all.

    NIGHTSCHOOL_HOME=… python -m docs.screenshots

Needs Chromium (Debian: chromium) and a home with two finished nights; Prefect's parameter form is there only where the
flow was deployed to the home's server (see prefect.yaml). Pictures are of the last finished night. Nothing of the home
is changed.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from conf.load import load_night
from conf.storage.home import Home
from docs.browser import Page, browser
from flows.run.history import last_report
from flows.web.address import LOOPBACK, free_port
from tasks.tracking import NIGHT_RUNS, TRAINING_VIEW, Tracking

DOCS = Path(__file__).parent
TOUR = "# A tour in pictures\n\nMade by `python -m docs.screenshots` of a real home.\n"
CHARTS = f"{TRAINING_VIEW}&compareRunsMode=CHART"
ASSISTANT = "[data-component-id='mlflow.assistant.chat_panel.close']"  # MLflow's, which takes a third of the page


@dataclass(frozen=True)
class Picture:
    """A page to photograph: the file's name, what it shows, where it is, and the window's size in pixels.

    `clicks`: what is clicked before, one after the other, where it is there.
    """

    name: str
    shows: str
    url: str
    width: int = 1400
    height: int = 1000
    dark: bool = False
    clicks: tuple[str, ...] = ()


def main() -> None:
    """Serves the pages of the home for as long as it takes to photograph them."""
    home = Home.here()
    report = last_report(home, None)
    with _pages() as (prefect, mlflow), browser() as page:
        pictures = [*of_report(report), *of_prefect(home, report, prefect), *of_mlflow(home, report, mlflow)]
        for picture in pictures:
            shoot(picture, page)
            print(DOCS / f"{picture.name}.png")
    shown = "".join(f"\n## {picture.shows}\n\n![{picture.shows}]({picture.name}.png)\n" for picture in pictures)
    (DOCS / "tour.md").write_text(f"{TOUR}{shown}")


def of_report(report: Path) -> list[Picture]:
    """On a desk and on a telephone, by day and by night."""
    url = report.as_uri()
    return [
        Picture("report", "The morning report", url, 1200, 1500),
        Picture("report-dark", "The morning report, in the dark", url, 1200, 1500, dark=True),
        Picture("report-narrow", "The morning report on a telephone", url, 400, 1200),
        Picture("report-narrow-dark", "The morning report on a telephone, in the dark", url, 400, 1200, dark=True),
    ]


def of_prefect(home: Home, report: Path, server: str) -> list[Picture]:
    """The night as a run, what it shows besides, and the form that starts one."""
    run = f"{server}/runs/flow-run/{_runs(home, report)[0].data.tags['prefect.flow_run']}"
    found = [
        Picture("prefect-runs", "Prefect: the nights, and what was moved by hand", f"{server}/runs", height=1200),
        Picture("prefect", "Prefect: the night as a run, task by task", run),
        Picture("prefect-artifacts", "Prefect: what nights leave to read", f"{server}/artifacts"),
    ]
    for key, name, shows in (
        ("morning-report", "prefect-report", "Prefect: the report, in short"),
        ("daytime", "prefect-daytime", "Prefect: who served since when, and by whose doing"),
    ):
        newest = {"artifacts": {"key": {"any_": [key]}}, "sort": "CREATED_DESC", "limit": 1}
        for artifact in _asked(f"{server}/api/artifacts/filter", newest):
            found.append(Picture(name, shows, f"{server}/artifacts/artifact/{artifact['id']}"))
    wanted = {"deployments": {"name": {"any_": ["nightly"]}}, "limit": 1}
    for deployment in _asked(f"{server}/api/deployments/filter", wanted):
        form, shows = f"{server}/deployments/deployment/{deployment['id']}/run", "Prefect: the configuration as a form"
        found.append(Picture("prefect-parameters", shows, form, height=1400, clicks=("NightConfig",)))
    return found


def of_mlflow(home: Home, report: Path, server: str) -> list[Picture]:
    """The nights beside each other, the last one's figures, and the registered checkpoints."""
    runs = _runs(home, report)
    experiment = runs[0].info.experiment_id
    page = f"{server}/#/experiments/{experiment}"
    run = f"{page}/runs/{runs[0].info.run_id}"
    model = load_night(report.parent / "config.yaml").name
    found = [
        Picture("mlflow-runs", "MLflow: the nights", f"{page}/runs?{TRAINING_VIEW}"),
        Picture("mlflow-compared", "MLflow: the nights beside each other", f"{page}/runs?{CHARTS}", height=1400),
        Picture("mlflow-metrics", "MLflow: a night's figures, round by round", f"{run}/model-metrics"),
        Picture("mlflow-versions", "MLflow: the registered checkpoints", f"{server}/#/models/{model}", height=1100),
    ]
    return [replace(picture, clicks=(ASSISTANT,)) for picture in found]


def shoot(picture: Picture, page: Page) -> None:
    """Takes the picture."""
    file = DOCS / f"{picture.name}.png"
    page.show(picture.url, picture.width, picture.height, picture.dark)
    for wanted in picture.clicks:
        page.click(wanted)
    page.photograph(file)
    with Image.open(file) as taken:
        drawn = taken.quantize(256)  # a quarter of the size, and nobody sees it
    drawn.save(file, optimize=True)


@contextmanager
def _pages() -> Iterator[tuple[str, str]]:
    """The addresses of Prefect's and MLflow's servers, as `nightschool ui` starts them."""
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
    """The finished nights in MLflow, the newest first."""
    tracking = Tracking(home, load_night(report.parent / "config.yaml"))
    return tracking.client.search_runs(
        [tracking.experiment_id], f"attributes.status = 'FINISHED' and {NIGHT_RUNS}", order_by=["start_time DESC"]
    )


def _asked(url: str, what: dict[str, Any]) -> list[dict[str, Any]]:
    request = urllib.request.Request(url, json.dumps(what).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def _wait(url: str, seconds: float = 180) -> None:
    """Until a server answers."""
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
