"""What a night has to do with besides its home: MLflow, Prefect, and its owner."""

from typing import Annotated

from pydantic import Field, field_validator

from conf.redact import MLFLOW, complaint
from conf.section import Section


class TrackingConfig(Section):
    """Where MLflow keeps the evidence, and where else a promoted checkpoint goes."""

    tracking_uri: str | None = Field(default=None, description="an MLflow server's URL; null: SQLite under the home")
    experiment: str = Field(default="nightschool", description="name of MLflow's experiment")
    hub_repo: Annotated[str, Field(pattern=r"^[\w-][\w.-]*/[\w-][\w.-]*$")] | None = Field(
        default=None, description="owner/name on the Hugging Face hub that who is promoted is pushed to; null: nowhere"
    )

    @field_validator("tracking_uri")
    @classmethod
    def carries_no_password(cls, uri: str | None) -> str | None:
        """The configuration is written into the night's folder and into MLflow."""
        if uri is not None and (what := complaint(uri, MLFLOW)) is not None:
            raise ValueError(what)
        return uri


class AlarmsConfig(Section):
    """How an alarm reaches the owner while the night runs; see docs/watching.md."""

    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, description="a program and its arguments, run once an alarm, which it finds on its input"
    )


class MorningConfig(Section):
    """How the report's short form reaches the owner; see docs/report.md."""

    webhook_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None,
        description="environment variable that holds the URL to which it is posted, once a night; null: nowhere",
    )


class PrefectConfig(Section):
    """The Prefect server that the night starts when none is configured."""

    port: Annotated[int, Field(ge=1024, le=65535)] | None = Field(default=None, description="null: any free port")
