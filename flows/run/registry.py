"""Open the registry that a configuration means."""

from mlflow import MlflowClient

from conf.schema import NightConfig
from conf.storage.home import Home
from flows.web.health import check_mlflow
from tasks.monitoring.tracking import tracking_uri
from tasks.registry.mlflow_registry import Registry


def open_registry(home: Home, config: NightConfig) -> Registry | None:
    """Return a configuration's registry; None where no night has begun one, so that reading makes no database."""
    uri = tracking_uri(home, config)
    if uri == home.database and not home.database_file.exists():
        return None
    check_mlflow(uri)
    return Registry(MlflowClient(tracking_uri=uri, registry_uri=uri), config.name)
