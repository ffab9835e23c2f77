"""The registry of a home, for commands that look at it or move its aliases."""

from mlflow import MlflowClient

from conf.home import Home
from conf.schema import NightConfig
from flows.servers import check_mlflow
from tasks.registry import Registry
from tasks.tracking import tracking_uri


def open_registry(home: Home, config: NightConfig) -> Registry | None:
    """The registry that a configuration means; None where no night has begun one: who only looks makes no database.

    Raises InputError where the place that the environment names carries a password, or its server does not fit.
    """
    uri = tracking_uri(home, config)
    if uri == home.database and not home.database_file.exists():
        return None
    check_mlflow(uri)
    return Registry(MlflowClient(tracking_uri=uri, registry_uri=uri), config.name)
