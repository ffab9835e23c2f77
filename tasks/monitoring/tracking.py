"""MLflow tracking: one run per night, which holds the night's configuration, the metrics of every round, and files."""

import hashlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.utils.git_utils import get_git_commit
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT, MLFLOW_GIT_COMMIT, MLFLOW_RUN_NOTE
from requests import RequestException

from conf.load import frozen_yaml
from conf.schema import NightConfig, Section
from conf.sections.redact import MLFLOW, without_password
from conf.storage.durable import disk_is_full, write_atomically
from conf.storage.home import Home
from conf.storage.log import log
from rewards.verifier import Problem

UNREACHABLE = (MlflowException, RequestException)  # raised if MLflow, or its store of artifacts, does not answer
RUN_FILE = "mlflow_run.txt"
NIGHT_RUNS = "tags.`mlflow.source.name` = 'nightschool night'"  # excludes their nested runs
HOME_TAG = "nightschool.home"
# This tag tells MLflow to show an experiment as model training with metrics, not as an application with traces.
# MLflow 3.17 ignores the tag on its pages: they show traces unless the URL asks for training (see TRAINING_VIEW).
KIND = {"mlflow.experimentKind": "custom_model_development"}
EXPERIMENT_NOTE = (
    "One run per night. Its steps are rounds; the runs nested in it are the checkpoints that the exam compared."
)
TRAINING_VIEW = "workflowType=machine_learning"

# MLflow's chart groups, each with its round metrics. `_grouped` chooses the group of a metric that is not listed here.
CHARTS = {
    "reward": (
        *("reward", "signal_share", "expected_signal_share", "useful_groups", "groups"),
        *("refills", "replaced_groups", "null_rewards", "teacher_kl"),
    ),
    "completion": ("completion_length", "truncated_share"),
    "speed": ("tokens_per_second",),
    "sampler": (
        *("mismatch", "mismatch_max", "probe_difference", "sampler_ratio", "sampler_ratio_max", "sampler_ratio_min"),
        *("sampler_k3", "effective_sample_share", "masked_share"),
    ),
}


def home_mark(home: Home) -> str:
    """Return the tag value that identifies a home on a shared server: a digest of the host name and the home's path."""
    return "home-" + hashlib.sha256(f"{socket.gethostname()}:{home.root}".encode()).hexdigest()[:12]


def tracking_uri(home: Home, config: NightConfig) -> str:
    """Return MLflow's URI: the configured one, else MLFLOW_TRACKING_URI, else the home's database.

    Raises InputError if the variable's URI contains a password. A configured URI was checked when it was loaded.
    """
    named = without_password(os.environ.get("MLFLOW_TRACKING_URI", ""), "MLFLOW_TRACKING_URI", MLFLOW)
    return config.tracking.tracking_uri or named or home.database


class Tracking:
    """A night's run in MLflow.

    If MLflow does not answer in the middle of a night, what was to be logged is sent later: with the next figures, or
    by `catch_up`. From then on, an error is raised.
    """

    def __init__(self, home: Home, config: NightConfig) -> None:
        self._missed: list[Callable[[], object]] = []
        self._defers, self._sending = True, threading.RLock()
        self.uri = tracking_uri(home, config)
        self.client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
        self.run_id, name = "", config.tracking.experiment
        if known := self.client.get_experiment_by_name(name):
            self.experiment_id = known.experiment_id
            if known.lifecycle_stage == "deleted":
                self.client.restore_experiment(self.experiment_id)
        else:
            location = (home.root / "mlartifacts").as_uri() if self.uri == home.database else None
            tags = KIND | {MLFLOW_RUN_NOTE: EXPERIMENT_NOTE}
            self.experiment_id = self.client.create_experiment(name, artifact_location=location, tags=tags)

    def open_run(self, night: Path, config: NightConfig, links: Mapping[str, str]) -> None:
        """Resume an interrupted night's run, or create one with the frozen configuration and with `links` as tags."""
        file = night / RUN_FILE
        if file.exists():
            with suppress(MlflowException):  # the run may have been deleted
                self.client.update_run(file.read_text(), status="RUNNING")
                self.run_id = file.read_text()
                return
        tags = {"mlflow.source.name": "nightschool night", "night": night.name, **links}
        if commit := get_git_commit(__file__):  # None outside a git checkout
            tags[MLFLOW_GIT_COMMIT] = commit
        tags[MLFLOW_RUN_NOTE] = f"The night {night.name} of `{config.name}`. Its report is among the artifacts."
        run = self.client.create_run(self.experiment_id, run_name=f"{config.name} {night.name}", tags=tags)
        self.run_id = run.info.run_id
        self.client.log_batch(self.run_id, params=_params(config))
        self.client.log_text(self.run_id, frozen_yaml(config), "config.yaml")
        write_atomically(file, self.run_id)

    def log_round(self, number: int, metrics: Mapping[str, float]) -> None:
        """Log a round's metrics at step `number`."""
        self.log({_grouped(name): value for name, value in metrics.items()}, number)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log several metrics at one step, in one call."""
        now = int(time.time() * 1000)
        batch = [Metric(metric_name(name), float(value), now, step) for name, value in metrics.items()]
        self._send(lambda: self.client.log_batch(self.run_id, metrics=batch))

    def log_dataset(self, name: str, context: str, source: str | None, problems: Sequence[Problem]) -> None:
        """Record problems as an input dataset of the run. `context`: training or exam. A restart adds no duplicate.

        The dataset's digest covers the problems' ids, questions and truths, in the given order.
        """
        texts = [[problem.problem_id, problem.question, problem.truth] for problem in problems]
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8]
        origin = json.dumps({"source": source or "the benchmark's default"})
        profile = json.dumps({"num_rows": len(texts)})
        dataset = Dataset(name, digest, "local", origin, schema=None, profile=profile)
        self.client.log_inputs(self.run_id, [DatasetInput(dataset, [InputTag(MLFLOW_DATASET_CONTEXT, context)])])

    def log_artifact(self, file: Path, folder: str | None = None) -> None:
        """Upload a file to the run's artifacts, into `folder` or, without one, at the top level."""
        self._send(lambda: self.client.log_artifact(self.run_id, str(file), folder))

    def tag(self, **tags: str) -> None:
        """Set tags on the run."""
        batch = [RunTag(name, value) for name, value in tags.items()]
        self._send(lambda: self.client.log_batch(self.run_id, tags=batch))

    def catch_up(self) -> None:
        """Send what MLflow has missed, and defer nothing from now on. Raises MlflowException and RequestException."""
        with self._sending:
            self._defers = False
            self._send_missed()

    def _send(self, call: Callable[[], object]) -> None:
        with self._sending:
            try:
                self._send_missed()
                call()
            except UNREACHABLE as error:
                if not self._defers or disk_is_full(error):
                    raise
                if not self._missed:
                    log.warning("MLflow does not answer; the night goes on, and its metrics are sent later: %s", error)
                self._missed.append(call)

    def _send_missed(self) -> None:
        while self._missed:
            self._missed[0]()
            self._missed.pop(0)

    def close_run(self, status: str) -> None:
        """End the run, if one is open. `status`: FINISHED, FAILED or KILLED."""
        if self.run_id:
            self.client.set_terminated(self.run_id, status)

    @property
    def run_path(self) -> str:
        """The path of the run's page in MLflow's model-training view, relative to the server's root."""
        return f"#/experiments/{self.experiment_id}/runs/{self.run_id}?{TRAINING_VIEW}"


def metric_name(name: str) -> str:
    """Replace all characters that MLflow refuses in a metric's name by `_`."""
    return re.sub(r"[^/\w.\- :]", "_", name)


def _grouped(name: str) -> str:
    if name.startswith(("seconds_", "verdicts/", "reward/")):
        return name.replace("seconds_", "seconds/")
    return f"{next((chart for chart, names in CHARTS.items() if name in names), 'update')}/{name}"


def _params(config: NightConfig) -> list[Param]:
    """Return the configuration as flat MLflow parameters, each value truncated to MLflow's limit of 500 characters."""
    sections: Section = config
    (flat,) = pd.json_normalize(sections.model_dump(mode="json")).to_dict("records")
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in flat.items()}
    return [Param(str(key), value[:500]) for key, value in values.items()]
