"""A real classroom as a child process, and the requests that its page makes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.inputs.owners import TOKENS
from conf.load import STARTER
from flows.web.address import free_port
from tasks.workers.worker import die_with_parent


class Classroom:
    """A running `nightschool teach`, and the seconds that its requests took."""

    def __init__(self, home: Path, settings: Sequence[str]) -> None:
        command = [sys.executable, "-m", "flows", "teach", f"--config={STARTER}", "--json", f"--port={free_port()}"]
        # hold out nothing that is taught: the benchmark itself keeps the questions of a look apart
        plain = ("learned_reward.owner_share=0", f"teach.max_answer_tokens={TOKENS}", *settings)
        parent = os.getpid()
        self.process = subprocess.Popen(
            [*command, *(f"--set={setting}" for setting in plain)],
            env=os.environ | {"NIGHTSCHOOL_HOME": str(home.resolve())},
            stdout=subprocess.PIPE,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
        )
        assert self.process.stdout is not None
        address = json.loads(self.process.stdout.readline())
        here = f"http://127.0.0.1:{address['port']}"
        self.client = httpx.Client(base_url=here, headers={"Origin": here}, timeout=300)
        self.client.post("/api/session", json={"token": address["token"]}).raise_for_status()
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def state(self) -> dict[str, Any]:
        """Return the page's state."""
        return self.client.get("/api/state").json()

    def live(self, on: bool) -> None:
        """Learn from chats at once, or not."""
        self.client.post("/api/live", json={"on": on}).raise_for_status()

    def settle(self) -> None:
        """Wait until all lessons are learned, as an owner does who reads the answer."""
        while self.state()["learning"]:
            time.sleep(0.1)

    def say(self, text: str, conversation: str) -> dict[str, Any]:
        """Say something in a chat, and return what the page is told at the end."""
        response = self.client.post("/api/chat", json={"text": text, "conversation": conversation}).raise_for_status()
        return json.loads(response.text.strip().splitlines()[-1].removeprefix("data: "))

    def ask(self, question: str, *, timed: bool = False) -> list[dict[str, Any]]:
        """Ask a question, and return the answers that are not blank. If `timed`, record the seconds."""
        began, first = time.perf_counter(), 0.0
        answers: list[dict[str, Any]] = []
        with self.client.stream("POST", "/api/ask", json={"text": question}) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    first = first or time.perf_counter() - began
                    answers = json.loads(line[6:]).get("answers", answers)
        if timed:
            self.seconds["first"].append(first)
            self.seconds["five"].append(time.perf_counter() - began)
        return [answer for answer in answers if answer["text"].strip()]

    def teach(self, kind: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Teach one lesson about an answer, and return the classroom's report of it."""
        lesson = self.client.post("/api/lesson", json={"kind": kind, "answer": answer["id"]}).raise_for_status().json()
        self.seconds["saved"].append(lesson["saved_seconds"])
        if lesson["seconds"] is not None:
            self.seconds["learned"].append(lesson["seconds"])
        return lesson

    def undo(self, lesson: str) -> None:
        """Undo a lesson, and record the seconds that this took."""
        undone = self.client.request("DELETE", f"/api/lesson/{lesson}", json={}).raise_for_status().json()
        self.seconds["undone"].append(undone["seconds"])

    def memory(self) -> float:
        """Return the memory of the classroom's processes in GB (proportional set size: shared pages count once)."""
        import psutil

        command = psutil.Process(self.process.pid)
        return sum(one.memory_full_info().pss for one in [command, *command.children(recursive=True)]) / 1e9


@contextmanager
def classroom(home: Path, settings: Sequence[str]) -> Iterator[Classroom]:
    """Run a classroom on a home while the block runs."""
    running = Classroom(home, settings)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait()
