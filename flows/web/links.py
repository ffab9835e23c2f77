"""Links to a night's run in Prefect and in MLflow."""

from prefect.runtime import flow_run

from conf.redact import redact
from flows.web.address import HERE, MLFLOW_PORT
from tasks.monitoring.tracking import Tracking

MLFLOW_PAGES = HERE.url(MLFLOW_PORT)


def prefect_link() -> dict[str, str]:
    """Return the flow run's id and page, as tags of the run in MLflow."""
    return {"prefect.flow_run": flow_run.get_id() or "", "prefect.url": _prefect_page()}


def _prefect_page() -> str:
    """Return the run's page without a password, which a worker's API URL may carry."""
    return redact(flow_run.get_flow_run_ui_url() or "")


def links_of(tracking: Tracking) -> dict[str, str]:
    """Return the pages of the night's run; those of a home's own databases need `nightschool ui` or `services`."""
    server = tracking.uri.rstrip("/") if tracking.uri.startswith("http") else MLFLOW_PAGES
    return {"mlflow": f"{server}/{tracking.run_path}", "prefect": _prefect_page()}
