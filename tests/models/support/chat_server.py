"""Servers on a port of this machine: any at all, and one that speaks the OpenAI protocol, well or badly."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    """What somebody asked of a server."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Reply:
    """What the server says to a request."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    seconds: float = 0.0
    pause: float = 0.0  # seconds after each byte of the body
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Served:
    """A running server's address, and what it was asked."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def said(text: object, prompt_tokens: object = 20, answer_tokens: object = 10) -> Reply:
    """A chat completion with this text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": answer_tokens, "total_tokens": 0}
    completion = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(json.dumps(completion | {"usage": usage}).encode())


@contextmanager
def http_server(answer: Callable[[Request], Reply]) -> Iterator[str]:
    """Serves `answer(request)` for as long as the context lasts, at the URL that it yields."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = answer(Request(self.command, self.path, self.headers, body))
            time.sleep(reply.seconds)
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                for at in range(len(reply.body)) if reply.pause else ():
                    self.wfile.write(reply.body[at : at + 1])
                    time.sleep(reply.pause)
                self.wfile.write(b"" if reply.pause else reply.body)
            except OSError:  # whoever asked has gone
                pass

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Reply]) -> Iterator[Served]:
    """Serves `answer(request)` to whoever posts JSON, for as long as the context lasts."""
    served = Served()

    def reply(request: Request) -> Reply:
        served.requests.append(json.loads(request.body))
        served.keys.append(request.headers.get("Authorization", ""))
        return answer(served.requests[-1])

    with http_server(reply) as url:
        served.url = f"{url}/v1"
        yield served
