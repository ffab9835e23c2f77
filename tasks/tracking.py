"""MLflow: one run a night, the figures of every round, the tables, and the checkpoints that sat the exam."""

import hashlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from conf.load import frozen_yaml
from conf.redact import MLFLOW, without_password
from conf.schema import NightConfig, Section
from conf.storage.durable import write_atomically
from conf.storage.home import Home

RUN_FILE = "mlflow_run.txt"
HOME_TAG = "nightschool.home"
# MLflow's pages show either an application's traces or a training's metrics. Which of the two is an experiment's is
# this tag's to say; the pages of MLflow 3.17 ask their own address instead (and by default show traces).
KIND = {"mlflow.experimentKind": "custom_model_development"}
TRAINING_VIEW = "workflowType=machine_learning"

# Which group of MLflow's charts a round's figure belongs to.
GROUPS = {
    "reward": "reward",
    "signal_share": "reward",
    "useful_groups": "reward",
    "groups": "reward",
    "refills": "reward",
    "replaced_groups": "reward",
    "expected_signal_share": "reward",
    "even_signal_share": "reward",
    "null_rewards": "reward",
    "teacher_kl": "reward",
    "completion_length": "completion",
    "truncated_share": "completion",
    "tokens_per_second": "speed",
    "mismatch": "sampler",
    "probe_difference": "sampler",
    "mismatch_max": "sampler",
    "sampler_ratio": "sampler",
    "sampler_ratio_max": "sampler",
    "sampler_ratio_min": "sampler",
    "sampler_k3": "sampler",
    "effective_sample_share": "sampler",
    "masked_share": "sampler",
}


def home_mark(home: Home) -> str:
    """What tells this home from all others that share a server: a digest of the machine's name and the home's path."""
    return "home-" + hashlib.sha256(f"{socket.gethostname()}:{home.root}".encode()).hexdigest()[:12]


def tracking_uri(home: Home, config: NightConfig) -> str:
    """Where MLflow keeps the evidence: as configured, else MLFLOW_TRACKING_URI, else the home's own database.

    Raises InputError where the variable carries a password; the configuration refuses one itself.
    """
    named = without_password(os.environ.get("MLFLOW_TRACKING_URI", ""), "MLFLOW_TRACKING_URI", MLFLOW)
    return config.tracking.tracking_uri or named or home.database


class Tracking:
    """A night's run in MLflow. The database is the home's own unless the configuration names a server."""

    def __init__(self, home: Home, config: NightConfig) -> None:
        self.uri = tracking_uri(home, config)
        self.client = MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)
        self.experiment_id = self._experiment(config.tracking.experiment, home)
        self.run_id = ""

    def _experiment(self, name: str, home: Home) -> str:
        known = self.client.get_experiment_by_name(name)
        if known is not None:
            for tag, value in KIND.items():
                if tag not in known.tags:
                    self.client.set_experiment_tag(known.experiment_id, tag, value)
            return known.experiment_id
        location = (home.root / "mlartifacts").as_uri() if self.uri == home.database else None
        return self.client.create_experiment(name, artifact_location=location, tags=KIND)

    def open_run(self, night: Path, config: NightConfig, links: Mapping[str, str]) -> None:
        """The night's run: the one it had before it was interrupted, or a new one with the frozen configuration."""
        note = night / RUN_FILE
        if note.exists() and self._goes_on(note.read_text()):
            return
        tags = {"mlflow.source.name": "nightschool night", "night": night.name} | code_version() | dict(links)
        run = self.client.create_run(self.experiment_id, run_name=f"{config.name} {night.name}", tags=tags)
        self.run_id = run.info.run_id
        self.client.log_batch(self.run_id, params=_params(config))
        self.client.log_text(self.run_id, frozen_yaml(config), "config.yaml")
        write_atomically(note, self.run_id)

    def _goes_on(self, run_id: str) -> bool:
        try:
            self.client.update_run(run_id, status="RUNNING")
        except MlflowException:
            return False
        self.run_id = run_id
        return True

    def log_round(self, number: int, metrics: Mapping[str, float]) -> None:
        """The figures of a round, at step `number`."""
        self.log({_grouped(name): value for name, value in metrics.items()}, number)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Several figures at one step, in one call."""
        now = int(time.time() * 1000)
        self.client.log_batch(
            self.run_id, metrics=[Metric(name, float(value), now, step) for name, value in metrics.items()]
        )

    def log_artifact(self, file: Path, folder: str | None = None) -> None:
        """Copies a file into the run, at the top or into a folder."""
        self.client.log_artifact(self.run_id, str(file), folder)

    def tag(self, **tags: str) -> None:
        """Marks the run."""
        self.client.log_batch(self.run_id, tags=[RunTag(name, value) for name, value in tags.items()])

    def close_run(self, status: str) -> None:
        """Ends the run: FINISHED, FAILED or KILLED."""
        if self.run_id:
            self.client.set_terminated(self.run_id, status)

    @property
    def run_path(self) -> str:
        """Where MLflow's pages show the run as a training, from the server's root on."""
        return f"#/experiments/{self.experiment_id}/runs/{self.run_id}?{TRAINING_VIEW}"


def code_version() -> dict[str, str]:
    """The commit of the code that runs, as MLflow's own tag; nothing outside a checkout."""
    here = Path(__file__).parent
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return {"mlflow.source.git.commit": found.stdout.strip()} if found.returncode == 0 else {}


def _grouped(name: str) -> str:
    if name.startswith(("seconds_", "verdicts/", "reward/")):
        return name.replace("seconds_", "seconds/")
    return f"{GROUPS.get(name, 'update')}/{name}"


def _params(config: NightConfig) -> list[Param]:
    """The configuration as MLflow's flat parameters (a value's first 500 characters, its limit)."""
    flat: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, item in value.items():
                walk(f"{prefix}.{key}" if prefix else key, item)
        else:
            flat[prefix] = value if isinstance(value, str) else json.dumps(value)

    sections: Section = config
    walk("", sections.model_dump(mode="json"))
    return [Param(key, str(value)[:500]) for key, value in flat.items()]
