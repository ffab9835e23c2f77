"""`nightschool teach`: what it refuses, and a day with the real vLLM, killed and gone on with."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from rich.console import Console

from conf.storage.home import Home, InputError
from conf.storage.journal import FROM_CHAR
from conf.storage.journal_file import read_file
from conf.storage.locks import NightRunningError, hold, wait_for_server
from flows.commands.teach import start_night, teach
from flows.teaching.terminal import Terminal
from flows.web.address import free_port
from tests.conf.storage.lock_holder import holder
from tests.flows.serving.conftest import SETTINGS
from tests.flows.serving.conftest import School as Served
from tests.flows.teaching.conftest import Do, School, ask_page
from tests.tasks.doubles.processes import gone_within
from tests.waiting import awaited

DAYS = "tags.`mlflow.source.name` = 'nightschool teach'"
LIMIT = 300.0  # seconds; an engine takes half a minute to start


class Teaching:
    """The running command, and a browser's session with it."""

    def __init__(self, served: Served, log: Path) -> None:
        settings = [*SETTINGS, "learned_reward.owner_share=0", "teach.max_answer_tokens=12", "teach.step_nats=1"]
        command = [sys.executable, "-m", "flows", "teach", "--json", "--port", str(free_port())]
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*command, *(f"--set={one}" for one in settings)],
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        address = json.loads(self.process.stdout.readline() or pytest.fail(log.read_text()))
        here = f"http://127.0.0.1:{address['port']}"
        self.client = httpx.Client(base_url=here, headers={"Origin": here}, timeout=LIMIT)
        assert self.client.post("/api/session", json={"token": address["token"]}).status_code == 200

    def lesson(self, kind: str, answer: dict[str, Any], **more: Any) -> dict[str, Any]:
        return self.client.post("/api/lesson", json={"kind": kind, "answer": answer["id"], **more}).json()

    def state(self) -> dict[str, Any]:
        return self.client.get("/api/state").json()

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """End it as the kernel does when memory is short, and see that nothing of it is left."""
        everything = self.children()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert gone_within(30, *(child.pid for child in everything))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "teach.err"


@pytest.mark.slow
def test_a_day_with_the_real_engine(served: Served, log: Path) -> None:
    day = Teaching(served, log)
    long = day.client.post("/api/ask", json={"text": "12 " * 200})
    assert (long.status_code, "the conversation has" in long.json()["error"]) == (400, True)
    taught = day.lesson("praise", next(answer for answer in ask_page(day.client) if answer["text"].strip()))
    assert taught["learned"], taught
    assert day.state()["day"] == taught["day"]
    day.process.send_signal(signal.SIGINT)
    assert day.process.wait(120) == 130, log.read_text()
    assert_recorded(served, taught)


def assert_recorded(served: Served, last: dict[str, Any]) -> None:
    """In the journal and in MLflow."""
    ((_, line),), bad = read_file(next(served.home.journal.iterdir()))
    assert (line.model_extra["lesson"], bad) == (last["lesson"], [])
    (run,) = served.tracking.client.search_runs([served.tracking.experiment_id], DAYS)
    history = served.tracking.client.get_metric_history(run.info.run_id, "day/change_nats")
    assert [metric.step for metric in history] == [*range(1, len(history) + 1)]  # what was killed may be missing
    assert history[-1].value == pytest.approx(last["change_nats"])


@pytest.mark.full
def test_a_day_that_is_killed_and_goes_on(served: Served, log: Path) -> None:
    first = Teaching(served, log)
    taught = []
    for kind, more in (("pick", {}), ("correct", {"text": "It is 4."}), ("wrong_from", {"from_char": 0})):
        answers = [answer for answer in ask_page(first.client) if answer["text"].strip()]
        taught.append(first.lesson(kind, answers[0], **more))
        assert taught[-1]["learned"], taught[-1]
    state = first.state()
    assert state["day"] == taught[-1]["day"]
    first.kill()
    again = Teaching(served, log)
    assert again.state()["day"] == state["day"]
    assert [lesson["id"] for lesson in again.state()["lessons"]] == [one["lesson"] for one in reversed(taught)]
    for lesson in again.state()["lessons"]:
        assert again.client.request("DELETE", f"/api/lesson/{lesson['id']}", json={}).status_code == 200
    assert again.state()["lessons"] == []
    with hold(served.home.root, "the night 2026-11-22"):
        wait_for_server(served.home.root, LIMIT)
        refusal = again.client.post("/api/ask", json={"text": "2 + 2?"})
        assert (refusal.status_code, "the night 2026-11-22 is running" in refusal.json()["error"]) == (503, True)
    awaited(lambda: again.state()["ready"], "engine", LIMIT)
    last = again.lesson("praise", next(answer for answer in ask_page(again.client) if answer["text"].strip()))
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(120) == 130, log.read_text()
    assert_recorded(served, last)


def test_a_port_that_is_taken(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(InputError, match="is not available"):
        teach(port=other.getsockname()[1])


def test_a_page_is_shared_by_an_address_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for share, reason in (("192.0.2.1", "is not an address of this machine"), ("0.0.0.0", "means every address")):
        with pytest.raises(InputError, match=f"--share: {share} {reason}"):
            teach(port=free_port(), share=share)
    with pytest.raises(InputError, match="leave --terminal out"):
        teach(terminal=True, share="127.0.0.1")


def test_a_night_that_cannot_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "school").mkdir()
    with pytest.raises(InputError, match=r"no\.yaml"):
        start_night(Home(tmp_path / "school"), tmp_path / "no.yaml", ["seed=2"])


def test_while_a_night_runs_it_does_not_begin(served: Served) -> None:
    with holder(served.home.root), pytest.raises(NightRunningError, match="2026-11-20"):
        teach(port=free_port())


def test_the_terminal_teaches_the_same(school: School, do: Do) -> None:
    room = school.open()
    taught = ["2", "+1", "z", "e1 It is 12.", "x1 12", "x2 9999", "9", "w 7 + 5 = 12 and so on"]
    lines = iter(["7 + 5?", *taught, "q"])
    console = Console(record=True, width=80, force_terminal=False)
    do(Terminal(room, console, lambda _: next(lines)).run())
    told = [lesson["what"]["kind"] for lesson in room.state()["lessons"]]
    assert told == ["words", "wrong_from", "correct", "pick"]
    assert school.lines[-2].extra(FROM_CHAR) == len("It is ")  # in the corrected answer
    text = console.export_text()
    assert "Learned in" in text
    assert "answer 2 has no '9999'" in text
    assert "there is no answer 9" in text
    assert "Undone." in text


def test_what_was_refused_in_the_terminal_is_asked_again(school: School, do: Do) -> None:
    room, refused = school.open(), "9 + 9? " * 5
    lines = iter([b"7 + 5?", b"\xfc", refused.encode(), b"r", b"q"])

    def read(_: str) -> str:
        line = next(lines).decode()
        school.engine.longest = 30 if line == refused else 1000
        return line

    do(Terminal(room, Console(record=True), read).run())
    assert [messages[-1]["content"] for messages, _ in school.engine.asked] == ["7 + 5?", refused.strip()]


def test_a_chat_in_the_terminal(school: School, do: Do) -> None:
    room = school.open()
    lines = iter(["7 + 5?", "No, it is 13", "t", "+1", "n", "Another?", "q"])
    console = Console(record=True, width=80, force_terminal=False)
    do(Terminal(room, console, lambda _: next(lines), chat=True).run())
    told = [(lesson["what"]["kind"], lesson["what"]["text"]) for lesson in room.state()["lessons"]]
    assert told == [("praise", "12"), ("correct", "It is 13")]
    assert [len(messages) for messages, _ in school.engine.asked] == [1, 3, 1]
    assert "Teach this as a correction? It is 13" in console.export_text()
