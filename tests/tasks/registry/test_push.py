"""Pushing to a hub: the real client against a server on this machine."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from tasks.registry.push import push

REPO = "me/my-student"


class Hub(ThreadingHTTPServer):
    """As much of the Hugging Face hub as an upload needs; it keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.calls: list[tuple[str, str, bytes]] = []
        self.keys: set[str | None] = set()
        self.refuses = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def sent(self, path: str) -> bytes:
        """The body of the only call to a path."""
        (body,) = [body for _, called, body in self.calls if called == path]
        return body


class Answer(BaseHTTPRequestHandler):
    """One request's answer."""

    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        self.server.calls.append(("POST", path, body))
        self.server.keys.add(self.headers.get("Authorization"))
        if self.server.refuses:
            self._send({"error": "Invalid user token."}, 401)
        elif path.endswith("/preupload/main"):
            files = json.loads(body)["files"]
            self._send({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]})
        elif path.endswith("/commit/main"):
            self._send({"success": True, "commitOid": "a" * 40, "commitUrl": f"{self.server.url}/{REPO}/commit/aaa"})
        elif path.endswith("/validate-yaml"):
            self._send({"errors": [], "warnings": []})
        else:
            self._send({"url": f"https://huggingface.co/{REPO}"})  # the client takes no other host's

    def do_GET(self) -> None:
        self.server.calls.append(("GET", self.path, b""))
        found = {"id": REPO, "private": True, "sha": "b" * 40, "siblings": []}
        self._send(*(({"error": "Invalid user token."}, 401) if self.server.refuses else (found, 200)))

    def _send(self, content: Any, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", "hf_planted")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "c0ffee"
    folder.mkdir()
    for name in ("README.md", "config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"):
        (folder / name).write_text(f"the {name}")
    return folder


def test_every_file_goes_in_one_commit_to_a_private_repository(hub: Hub, checkpoint: Path) -> None:
    assert push.fn(checkpoint, REPO, "starter, the night 2026-11-20") is None
    made = json.loads(hub.sent("/api/repos/create"))
    assert (made["name"], made["organization"], made["visibility"]) == ("my-student", "me", "private")
    lines = [json.loads(line) for line in hub.sent(f"/api/models/{REPO}/commit/main").splitlines()]
    assert lines[0]["value"]["summary"] == "starter, the night 2026-11-20"
    files = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"
    }
    assert files == {file.name: file.read_bytes() for file in checkpoint.iterdir()}
    assert hub.keys == {"Bearer hf_planted"}


def test_a_hub_that_refuses_is_one_line_without_the_key(hub: Hub, checkpoint: Path) -> None:
    hub.refuses = True
    failure = push.fn(checkpoint, REPO, "…")
    assert failure is not None
    assert failure.startswith(f"c0ffee was not pushed to {REPO} (")
    assert "401" in failure
    assert "hf_planted" not in failure
    assert "\n" not in failure


def test_a_hub_that_does_not_answer_is_given_up(hub: Hub, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(Answer, "do_POST", lambda _: over.wait())
    monkeypatch.setattr("tasks.registry.push.LIMIT", 6.0)
    failure = push.fn(checkpoint, REPO, "…")
    over.set()
    assert failure == f"c0ffee was not pushed to {REPO} (the upload process had not finished after 6 s and was ended)"


@pytest.mark.parametrize("repo", ["my-student", "me/my/student", "https://hub/me/x", "me/"])
def test_a_name_that_is_no_repository_is_refused(repo: str) -> None:
    assert load_night(STARTER, [f"tracking.hub_repo={REPO}"]).tracking.hub_repo == REPO
    with pytest.raises(InputError, match="tracking.hub_repo"):
        load_night(STARTER, [f"tracking.hub_repo={repo}"])
