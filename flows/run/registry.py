"""Open the registry that a configuration means, and notice a home that was moved."""

from mlflow import MlflowClient

from conf.schema import NightConfig
from conf.storage.home import Home
from flows.web.health import check_mlflow
from tasks.registry.mlflow_registry import DAYTIME, Registry
from tasks.tracking import tracking_uri


def open_registry(home: Home, config: NightConfig) -> Registry | None:
    """Return a configuration's registry; None where no night has begun one, so that reading makes no database.

    Raises InputError where the environment's URL carries a password, or where its server does not fit.
    """
    uri = tracking_uri(home, config)
    if uri == home.database and not home.database_file.exists():
        return None
    check_mlflow(uri)
    return Registry(MlflowClient(tracking_uri=uri, registry_uri=uri), config.name)


def moved_home(home: Home, config: NightConfig) -> str | None:
    """Return a line where `models:/<name>@daytime` leads to another folder than this home's; None where it does not.

    A home that is copied or moved keeps the old paths in its database.
    """
    registry = open_registry(home, config) if tracking_uri(home, config) == home.database else None
    serving = registry and registry.named(DAYTIME)
    if not registry or serving is None:
        return None
    source, expected = registry.source(serving.version), (home.checkpoints / serving.digest).as_uri()
    if source == expected:
        return None
    return f"The registry points to {source.removeprefix('file://')}; this home was moved."
