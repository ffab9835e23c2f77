"""Where a night's run is seen: in Prefect and in MLflow."""

from prefect.runtime import flow_run

from conf.redact import redact
from flows.web.address import HERE, MLFLOW_PORT
from tasks.tracking import Tracking

MLFLOW_PAGES = HERE.url(MLFLOW_PORT)


def prefect_link() -> dict[str, str]:
    """The flow run's id and page, as tags of the run in MLflow."""
    return {"prefect.flow_run": flow_run.get_id() or "", "prefect.url": _prefect_page()}


def _prefect_page() -> str:
    """Where the run is seen; a worker's API URL, which it is made of, may carry a password."""
    return redact(flow_run.get_flow_run_ui_url() or "")


def links_of(tracking: Tracking) -> dict[str, str]:
    """Where the night's run is seen; of a home's own databases while `nightschool ui` serves them."""
    server = tracking.uri.rstrip("/") if tracking.uri.startswith("http") else MLFLOW_PAGES
    return {"mlflow": f"{server}/{tracking.run_path}", "prefect": _prefect_page()}
