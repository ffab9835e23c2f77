"""A webhook on loopback: a real server that notes what is posted to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.models.support.chat_server import Reply, Request, http_server

KEY = "T00key1234"


class Webhook:
    """Takes, refuses, redirects, hangs or answers byte by byte, according to the path of the URL."""

    def __init__(self) -> None:
        self.server = ""
        self.got: list[tuple[str, str, str]] = []  # method, type, body
        self.done = threading.Event()

    def url(self, path: str) -> str:
        """Return a URL with a key in it; `path`: takes, refuses, moved, hangs or drips."""
        return f"{self.server}/{path}/{KEY}"

    def answer(self, request: Request) -> Reply:
        self.got.append((request.method, request.headers.get("Content-Type", ""), request.body.decode()))
        path = request.path.split("/")[1]
        if path == "hangs":
            self.done.wait(20)
        if path == "drips":
            return Reply(b"." * 100, pause=0.1)
        return Reply(b"", {"refuses": 403, "moved": 302}.get(path, 200), headers={"Location": self.url("takes")})


@contextmanager
def listening() -> Iterator[Webhook]:
    """Run a webhook for as long as it is needed."""
    webhook = Webhook()
    with http_server(webhook.answer) as webhook.server:
        yield webhook
        webhook.done.set()
