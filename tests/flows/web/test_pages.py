"""MLflow's pages: the one that people are sent to, and the password in front of all."""

import base64
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.child import end_child
from flows.web.address import LOOPBACK, PASSWORD, Address, free_port
from flows.web.pages import _start_mlflow, experiment_page
from tasks.monitoring.tracking import Tracking
from tests.waiting import answers, awaited

ALL = "#/experiments?workflowType=machine_learning"


def test_the_page_of_the_only_experiment_or_of_all(home_with_mlflow: Callable[[str], Home], tmp_path: Path) -> None:
    assert experiment_page(Home(tmp_path)) == ALL
    assert list(tmp_path.iterdir()) == []  # no database is made for it
    home = home_with_mlflow("school")
    assert experiment_page(home) == ALL
    tracking = Tracking(home, load_night(STARTER))
    assert experiment_page(home) == f"#/experiments/{tracking.experiment_id}?workflowType=machine_learning"
    Tracking(home, load_night(STARTER, ["tracking.experiment=other"]))
    assert experiment_page(home) == ALL


def key(user: str) -> dict[str, str]:
    """The header of user and password, as `user:password`."""
    return {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"}


def test_a_guarded_app_answers_nobody_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.workers.worker.die_with_parent", lambda *_: None)  # importing the pages calls it
    from flows.web.mlflow_pages import Guarded

    async def answer(request: Request) -> Response:
        return PlainTextResponse("the nights")

    app = Guarded(Starlette(routes=[Route("/", answer)]), "s3cret")
    with TestClient(app) as client:  # its start and end pass, too
        for headers in ({}, key("nightschool:wrong"), key(":"), key("s3cret"), {"Authorization": "Basic s3cret"}):
            refused = client.get("/", headers=headers)
            assert (refused.status_code, "nights" in refused.text) == (401, False), headers
        assert client.get("/", headers=key("nightschool:s3cret")).text == "the nights"
        with pytest.raises(WebSocketDisconnect) as closed, client.websocket_connect("/"):
            pass
        assert closed.value.code == 1008  # policy violation, RFC 6455


@pytest.mark.full
def test_mlflow_behind_a_password(home_with_mlflow: Callable[[str], Home], monkeypatch: pytest.MonkeyPatch) -> None:
    """The real server: pages, API and traces answer nobody without the password, and it is written nowhere."""
    monkeypatch.setenv(PASSWORD, "planted-password")
    home, port = home_with_mlflow("school"), free_port()
    server, here = _start_mlflow(home, port, Address(LOOPBACK, "planted-password")), f"http://127.0.0.1:{port}"
    try:
        awaited(lambda: answers(here), "MLflow server", 120)
        with httpx.Client(base_url=here) as client:
            experiment = "/ajax-api/2.0/mlflow/experiments/get?experiment_id=0"
            for path in ("/", "/health", "/version", experiment, "/v1/traces"):
                assert client.get(path).status_code == 401, path
                assert client.get(path, headers=key("nightschool:wrong")).status_code == 401, path
            right = key("nightschool:planted-password")
            assert client.get("/", headers=right).status_code == 200
            assert client.get(experiment, headers=right).status_code == 200
            assert client.get("/", headers=right | {"Host": "10.evil.example"}).status_code == 403
            server.kill()  # and not what it started
            server.wait()
            time.sleep(1)
            with pytest.raises(httpx.ConnectError):
                client.get("/")
    finally:
        end_child(server)
    log = (home.root / "mlflow.log").read_bytes()
    assert b"401" in log
    assert b"planted" not in log
