"""Services outside the home: MLflow and a Ray cluster."""

from functools import partial
from typing import Annotated

from pydantic import Field

from conf.sections.redact import MLFLOW, refuse_password
from conf.sections.section import Section, checked


class TrackingConfig(Section):
    """Where MLflow stores its records."""

    tracking_uri: Annotated[str, checked(partial(refuse_password, instead=MLFLOW))] | None = Field(
        default=None, description="URL of an MLflow server; null: a SQLite file in the home"
    )
    experiment: str = Field(default="nightschool", description="name of the MLflow experiment")


class ClusterConfig(Section):
    """A Ray cluster of machines whose engines sample alongside this machine's engine; see docs/how-to/a-cluster.md."""

    address: Annotated[str, Field(pattern=r"^(auto|[^/\s]+:\d+)$")] | None = Field(
        default=None, description="host:port of a Ray cluster, or auto for the one on this machine; null: no cluster"
    )
