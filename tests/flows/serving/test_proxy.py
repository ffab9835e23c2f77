"""The gate: what passes it, what does not, and what clients get while there is no engine."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from openai import InternalServerError, OpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from flows.serving.proxy import Gate, listening
from flows.serving.recording import Recorder
from flows.web.address import HERE, LOOPBACK, Address
from tests.waiting import awaited


class Engine:
    """A stand-in for vLLM's server that can be slow, stream, and notice that a client has gone."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.heard: list[str] = []
        routes = [
            ("/health", self.health),
            ("/v1/echo", self.echo),
            ("/v1/slow", self.slow),
            ("/v1/stream", self.stream),
        ]
        self.app = Starlette(routes=[Route(path, answer, methods=["GET", "POST"]) for path, answer in routes])

    async def health(self, _: Request) -> Response:
        return Response("well")

    async def echo(self, request: Request) -> Response:
        found = {"path": request.url.path, "query": request.url.query, "body": (await request.body()).decode()}
        return JSONResponse(found | {"headers": dict(request.headers)}, 202, {"X-Engine": "yes"})

    async def slow(self, request: Request) -> Response:
        self.heard.append("slow")
        while not self.go_on.is_set():
            if await request.is_disconnected():
                self.heard.append("left")
                return Response("nobody reads this")
            await asyncio.sleep(0.01)
        return Response("at last")

    async def stream(self, _: Request) -> Response:
        async def parts() -> AsyncIterator[bytes]:
            yield b"one "
            while not self.go_on.is_set():
                await asyncio.sleep(0.01)
            yield b"two"

        return StreamingResponse(parts())


class Served(NamedTuple):
    """A gate at `url`, and the engine behind it on a socket file."""

    gate: Gate
    engine: Engine
    url: str
    socket: Path


@contextmanager
def gate_at(
    address: Address, folder: Path, opened: bool = True, engine: Any = None, recorder: Recorder | None = None
) -> Iterator[Served]:
    engine, gate, file = engine or Engine(), Gate(address.password, recorder), folder / "socket"
    server = uvicorn.Server(uvicorn.Config(engine.app, uds=str(file), lifespan="off", log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    awaited(lambda: server.started)
    with socket.create_server((LOOPBACK, 0)) as port, listening(gate, address, port):
        if opened:
            gate.open(file)
        yield Served(gate, engine, f"http://127.0.0.1:{port.getsockname()[1]}", file)
    server.should_exit = server.force_exit = True
    thread.join(5)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with gate_at(HERE, tmp_path) as found:
        yield found


def test_a_request_and_its_answer_pass_as_they_are(served: Served) -> None:
    answer = httpx.post(f"{served.url}/v1/echo?one=1&two=%20", content="grüße", headers={"X-Mine": "kept"})
    found = answer.json()
    assert (answer.status_code, answer.headers["x-engine"]) == (202, "yes")
    assert (found["path"], found["query"], found["body"]) == ("/v1/echo", "one=1&two=%20", "grüße")
    assert (found["headers"]["x-mine"], found["headers"]["content-length"]) == ("kept", "7")
    awaited(lambda: served.gate.under_way == 0)


def test_a_stream_arrives_while_it_is_written_and_whole_though_the_gate_closes(served: Served) -> None:
    with httpx.stream("GET", f"{served.url}/v1/stream") as answer:
        parts = answer.iter_bytes()
        assert next(parts) == b"one "
        assert served.gate.under_way == 1
        served.gate.close("another is being loaded", 10)
        assert httpx.get(f"{served.url}/v1/echo").status_code == 503
        assert served.gate.under_way == 1
        served.engine.go_on.set()
        assert b"".join(parts) == b"two"
    awaited(lambda: served.gate.under_way == 0)


def test_what_is_not_openais_protocol_does_not_pass(served: Served) -> None:
    connection = HTTPConnection(served.url.removeprefix("http://"))  # sends a path as it stands
    for path in ("/", "/invocations", "/metrics", "/v1", "/v1/../invocations", "/v1/%2e%2e/invocations"):
        connection.request("POST", path)
        answer = connection.getresponse()
        assert answer.status == 404, path
        assert b"OpenAI's protocol is at /v1/" in answer.read()
    connection.close()
    assert httpx.get(f"{served.url}/health").status_code == 200


def test_only_its_own_names(served: Served) -> None:
    assert httpx.get(f"{served.url}/v1/echo", headers={"Host": "localhost:8000"}).status_code == 202
    assert httpx.get(f"{served.url}/v1/echo", headers={"Host": "evil.example"}).status_code == 400


def test_a_key(tmp_path: Path) -> None:
    with gate_at(Address(LOOPBACK, "s3cret"), tmp_path) as served:
        for wrong in ("", "Bearer wrong", "s3cret", "Bearer ü"):
            headers = [(b"Authorization", wrong.encode())] if wrong else []
            for path in ("/v1/echo", "/v1/feedback", "/health"):
                assert httpx.post(served.url + path, headers=headers).status_code == 401, wrong
        right = httpx.get(f"{served.url}/v1/echo", headers={"Authorization": "Bearer s3cret"})
        assert right.status_code == 202
        assert "s3cret" not in right.text


def test_without_an_engine_clients_get_the_reason_and_when_to_retry(tmp_path: Path) -> None:
    with gate_at(HERE, tmp_path, opened=False) as served:
        served.gate.close("the night 2026-11-20 is running", 60)
        client = OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0)
        with pytest.raises(InternalServerError, match="2026-11-20") as caught:
            client.models.list()
        assert (caught.value.status_code, caught.value.response.headers["retry-after"]) == (503, "60")
        assert httpx.get(f"{served.url}/health").status_code == 503


def test_the_engine_hears_that_a_client_has_gone(served: Served) -> None:
    """Also of one whose answer has not begun: a long one would keep a small machine busy for nobody."""
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{served.url}/v1/slow", timeout=0.5)
    awaited(lambda: served.engine.heard == ["slow", "left"])
    awaited(lambda: served.gate.under_way == 0)


def test_an_engine_that_is_not_there(served: Served, tmp_path: Path) -> None:
    served.gate.open(tmp_path / "nobody")
    assert httpx.get(f"{served.url}/v1/echo").status_code == 503
    served.gate.open(served.socket)
    assert httpx.get(f"{served.url}/v1/echo").status_code == 202
