"""Takes the pictures of README and docs from a real home: report, Prefect's and MLflow's pages.

    NIGHTSCHOOL_HOME=… python docs/screenshots.py

Needs Chromium (Debian: chromium). Pictures are of the last finished night.
"""

import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from conf.home import Home
from conf.load import load_night
from flows.history import last_report
from flows.prefect_server import free_port
from tasks.tracking import Tracking

DOCS = Path(__file__).parent
CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def main() -> None:
    """Serves the pages of the home for as long as it takes to photograph them."""
    home = Home.here()
    report = last_report(home, None)
    shoot(report.as_uri(), DOCS / "report.png", 1200, 1500)
    shoot(report.as_uri(), DOCS / "report-narrow.png", 500, 1500)
    prefect, mlflow = free_port(), free_port()
    pages = subprocess.Popen(
        [sys.executable, "-m", "flows", "ui", "--prefect-port", str(prefect), "--mlflow-port", str(mlflow)]
    )
    try:
        wait(f"http://127.0.0.1:{prefect}/api/health")
        wait(f"http://127.0.0.1:{mlflow}/health")
        tracking = Tracking(home, load_night(report.parent / "config.yaml"))
        runs = tracking.client.search_runs([tracking.experiment_id], order_by=["start_time DESC"])
        flow_run = runs[0].data.tags["prefect.flow_run"]
        shoot(f"http://127.0.0.1:{prefect}/runs/flow-run/{flow_run}", DOCS / "prefect.png", 1400, 1000)
        experiment = f"http://127.0.0.1:{mlflow}/#/experiments/{tracking.experiment_id}"
        shoot(f"{experiment}/runs/{runs[0].info.run_id}/model-metrics", DOCS / "mlflow-metrics.png", 1400, 1000)
        shoot(f"http://127.0.0.1:{mlflow}/#/models/starter", DOCS / "mlflow-versions.png", 1400, 700)
    finally:
        pages.terminate()
        pages.wait()


def shoot(url: str, picture: Path, width: int, height: int) -> None:
    """A picture of a page, after it had time to load."""
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *CHROMIUM,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "--virtual-time-budget=30000",
                f"--screenshot={picture}",
                url,
            ],
            check=True,
            timeout=180,
            stderr=subprocess.DEVNULL,
        )


def wait(url: str, seconds: float = 180) -> None:
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
