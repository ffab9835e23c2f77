"""A server that speaks the OpenAI protocol, well or badly, on a port of this machine."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server says to a request."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Served:
    """A running server's address, and what it was asked."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


def said(text: object, prompt_tokens: object = 20, answer_tokens: object = 10) -> Reply:
    """A chat completion with this text."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": answer_tokens, "total_tokens": 0}
    completion = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(json.dumps(completion | {"usage": usage}).encode())


@contextmanager
def chat_server(answer: Callable[[dict[str, Any]], Reply]) -> Iterator[Served]:
    """Serves `answer(request)` for as long as the context lasts."""
    served = Served("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(request)
            served.keys.append(self.headers.get("Authorization", ""))
            reply = answer(request)
            time.sleep(reply.seconds)
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)
            except OSError:  # whoever asked has gone
                pass

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
