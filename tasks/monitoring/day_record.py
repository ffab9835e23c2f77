"""Logs the metrics of each lesson to the day's MLflow run, on a background thread."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import date

from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE

from conf.schema import NightConfig
from conf.storage.home import Home
from conf.storage.log import log
from tasks.monitoring.tracking import HOME_TAG, Tracking, home_mark

SOURCE = "nightschool teach"
LIMIT = 10.0  # seconds to wait for MLflow at the end of a session
NOTE = "The day's lessons, learned as they were taught; each step is a lesson. The night trains on them again."


class DayRecord:
    """The MLflow run of a day. Each lesson is one step."""

    def __init__(self, home: Home, config: NightConfig) -> None:
        self.home, self.config = home, config
        self._thread = ThreadPoolExecutor(1)
        self._last: list[Future[None]] = []  # the latest submission, which finishes after all others

    def lesson(self, champion: str, figures: Mapping[str, float | None]) -> None:
        """Log a lesson's metrics in the background. Metrics that are None are left out."""
        self._last = [self._thread.submit(self._log, champion, figures)]

    def close(self) -> None:
        """Wait until all metrics are written, but at most LIMIT seconds."""
        wait(self._last, LIMIT)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _log(self, champion: str, figures: Mapping[str, float | None]) -> None:
        try:
            tracking = Tracking(self.home, self.config)
            tracking.run_id = self._run(tracking, champion)
            tracking.catch_up()  # from now on, errors are raised
            step = int(tracking.client.get_run(tracking.run_id).data.metrics.get("day/lesson", 0.0)) + 1
            kept = {f"day/{name}": value for name, value in figures.items() if value is not None}
            tracking.log(kept | {"day/lesson": step}, step)
        except Exception as error:  # a server may fail in any way, and the journal has the lesson
            log.warning("MLflow does not keep this lesson's metrics: %s", error)

    def _run(self, tracking: Tracking, champion: str) -> str:
        """Return the ID of today's run for a champion. If there is no such run yet, create it."""
        day = date.today().isoformat()
        wanted = {"mlflow.source.name": SOURCE, "day": day, "champion": champion, HOME_TAG: home_mark(self.home)}
        query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in wanted.items())
        found = tracking.client.search_runs([tracking.experiment_id], query, max_results=1)
        if found:
            return found[0].info.run_id
        name = f"{self.config.name} day {day}"
        run = tracking.client.create_run(tracking.experiment_id, tags=wanted | {MLFLOW_RUN_NOTE: NOTE}, run_name=name)
        tracking.client.set_terminated(run.info.run_id, "FINISHED")  # now, so that a crash leaves no active run
        return run.info.run_id
