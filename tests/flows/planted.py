"""Keys as an owner has them in the environment, and a search for them in everything that a night wrote."""

import base64
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from flows.environment import DEFAULTS

MARK = "planted-7f3a9c"
KEYS = {
    "HF_TOKEN": f"hf_{MARK}",
    "OPENAI_API_KEY": f"sk-{MARK}",
    "NIGHTSCHOOL_TEACHER_KEY": f"sk-{MARK}-teacher",
    "NIGHTSCHOOL_JUDGE_KEY": f"sk-{MARK}-judge",
    "NIGHTSCHOOL_UI_PASSWORD": f"{MARK}-pages",
    "NIGHTSCHOOL_SERVE_KEY": f"sk-{MARK}-served",
    "NIGHTSCHOOL_WEBHOOK": f"http://127.0.0.1:9/{MARK}/chat",  # nobody answers there
    "MLFLOW_TRACKING_USERNAME": "me",
    "MLFLOW_TRACKING_PASSWORD": f"{MARK}-books",
    "PREFECT_API_AUTH_STRING": f"me:{MARK}",
}
TRACES = [MARK.encode(), *(base64.b64encode(f"me:{MARK}{end}".encode())[:-4] for end in ("", "-books"))]
# By these the libraries take themselves to be tested, and then send no statistics whatever their settings are.
TESTED = ("PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS", "BUILDKITE", "GITLAB_CI", "JENKINS_URL", "TF_BUILD")


def owners(home: Path) -> Path:
    """The home folder of whoever owns a school's home: what lies in it is what was written outside of the latter."""
    folder = home.with_name("owner")
    folder.mkdir(exist_ok=True)
    return folder


def owners_environment() -> dict[str, str]:
    """The environment of an owner's shell: keys are in it, and nothing that a test or this project has set."""
    left_out = {*TESTED, *DEFAULTS, "PYTHONPATH"}
    return {name: value for name, value in os.environ.items() if name not in left_out} | KEYS


def with_keys(folder: Path) -> Iterator[Path]:
    """The files under a folder that hold a key: as they are, and, of a table, as it reads."""
    for file in sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size):
        if file.suffix == ".parquet":
            content = pd.read_parquet(file).to_json().encode()
            found = any(trace in content for trace in TRACES)
        else:
            with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found = any(content.find(trace) >= 0 for trace in TRACES)
        if found:
            yield file
