"""A webhook on loopback: a real server that notes what is posted to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "T00key1234"


class Webhook(ThreadingHTTPServer):
    """Takes, refuses, redirects or hangs, by the path of the URL."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.got: list[tuple[str, str, str]] = []  # method, type, body
        self.done = threading.Event()

    def url(self, path: str) -> str:
        """Return a URL with a key in it; `path`: takes, refuses, moved or hangs."""
        return f"http://127.0.0.1:{self.server_port}/{path}/{KEY}"


class Answers(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.got.append((self.command, self.headers["Content-Type"], body))
        path = self.path.split("/")[1]
        if path == "hangs":
            self.server.done.wait(20)
        self.send_response({"refuses": 403, "moved": 302}.get(path, 200))
        self.send_header("Location", self.server.url("takes"))
        self.end_headers()

    def do_GET(self) -> None:
        self.server.got.append((self.command, "", ""))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def listening() -> Iterator[Webhook]:
    """Run a webhook for as long as it is needed."""
    with Webhook() as webhook:
        threading.Thread(target=webhook.serve_forever, daemon=True).start()
        try:
            yield webhook
        finally:
            webhook.done.set()
            webhook.shutdown()
