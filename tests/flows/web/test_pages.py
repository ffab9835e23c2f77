"""MLflow's pages: which a person is sent to (the night's runs, seen as trainings), and behind a password."""

import base64
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.web.address import LOOPBACK, PASSWORD, Address, free_port
from flows.web.pages import _start_mlflow, end, experiment_page
from tasks.tracking import Tracking

ALL = "#/experiments?workflowType=machine_learning"


def test_a_home_without_a_night_has_no_database_made_for_it(tmp_path: Path) -> None:
    assert experiment_page(Home(tmp_path)) == ALL
    assert list(tmp_path.iterdir()) == []


def test_the_nights_own_experiment_or_of_several_all(home_with_mlflow: Callable[[str], Home]) -> None:
    home = home_with_mlflow("school")
    assert experiment_page(home) == ALL
    tracking = Tracking(home, load_night(STARTER))
    assert experiment_page(home) == f"#/experiments/{tracking.experiment_id}?workflowType=machine_learning"
    Tracking(home, load_night(STARTER, ["tracking.experiment=other"]))
    assert experiment_page(home) == ALL


def asked(url: str, user: str | None = None, **headers: str) -> int:
    """The status that a request comes to."""
    if user is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_mlflow_behind_a_password(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server: pages, API and the way in for traces show nothing without it, and it is written nowhere."""
    monkeypatch.setenv(PASSWORD, "planted-password")
    home, port = home_with_mlflow("school"), free_port()
    with ended(_start_mlflow(home, port, Address(LOOPBACK, "planted-password"))) as server:
        page = f"http://127.0.0.1:{port}"
        wait_for_answer(page)
        for path in ("/", "/health", "/version", "/ajax-api/2.0/mlflow/experiments/get?experiment_id=0", "/v1/traces"):
            assert asked(page + path) == 401, path
            assert asked(page + path, "nightschool:wrong") == asked(page + path, ":") == 401
        right = "nightschool:planted-password"
        assert asked(page + "/", right) == 200
        assert asked(page + "/ajax-api/2.0/mlflow/experiments/get?experiment_id=0", right) == 200
        assert asked(page + "/", right, Host="10.evil.example") == 403
        server.kill()  # and not what it started
        server.wait()
        time.sleep(1)
        with pytest.raises(urllib.error.URLError):
            asked(page)
    log = (home.root / "mlflow.log").read_bytes()
    assert b"401" in log
    assert b"planted" not in log


@contextmanager
def ended(server: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Ends the server and what it started; nobody listens afterwards."""
    try:
        yield server
    finally:
        end(server)


def wait_for_answer(page: str) -> None:
    limit = time.monotonic() + 120
    while True:
        try:
            asked(page)
        except urllib.error.URLError:
            assert time.monotonic() < limit
            time.sleep(0.2)
        else:
            return
