"""Pushing to a hub: the real client against a server on this machine."""

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from tasks.registry.push import push
from tests.models.support.chat_server import Reply, Request, http_server

REPO = "me/my-student"


class Hub:
    """As much of the Hugging Face hub as an upload needs; it keeps what it is sent."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: dict[str, list[bytes]] = defaultdict(list)  # of what is posted, by path
        self.keys: set[str | None] = set()
        self.refuses = False
        self.over = threading.Event()  # cleared, it keeps its clients waiting
        self.over.set()

    def answer(self, request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if request.method == "POST":
            self.over.wait()
            self.bodies[path].append(request.body)
            self.keys.add(request.headers.get("Authorization"))
        if self.refuses:
            return Reply(b'{"error": "Invalid user token."}', 401)
        found: dict[str, Any] = {"url": f"https://huggingface.co/{REPO}"}  # the client takes no other host's
        if request.method == "GET":
            found = {"id": REPO, "private": True, "sha": "b" * 40, "siblings": []}
        elif path.endswith("/preupload/main"):
            files = json.loads(request.body)["files"]
            found = {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]}
        elif path.endswith("/commit/main"):
            found = {"success": True, "commitOid": "a" * 40, "commitUrl": f"{self.url}/{REPO}/commit/aaa"}
        elif path.endswith("/validate-yaml"):
            found = {"errors": [], "warnings": []}
        return Reply(json.dumps(found).encode())

    def sent(self, path: str) -> bytes:
        """The body of the only call to a path."""
        (body,) = self.bodies[path]
        return body


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    fake = Hub()
    with http_server(fake.answer) as fake.url:
        monkeypatch.setenv("HF_ENDPOINT", fake.url)
        monkeypatch.setenv("HF_TOKEN", "hf_planted")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield fake


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
    hub.over.clear()
    monkeypatch.setattr("tasks.registry.push.LIMIT", 6.0)
    failure = push.fn(checkpoint, REPO, "…")
    hub.over.set()
    assert failure == f"c0ffee was not pushed to {REPO} (the upload process had not finished after 6 s and was ended)"


@pytest.mark.parametrize("repo", ["my-student", "me/my/student", "https://hub/me/x", "me/"])
def test_a_name_that_is_no_repository_is_refused(repo: str) -> None:
    assert load_night(STARTER, [f"tracking.hub_repo={REPO}"]).tracking.hub_repo == REPO
    with pytest.raises(InputError, match="tracking.hub_repo"):
        load_night(STARTER, [f"tracking.hub_repo={repo}"])
