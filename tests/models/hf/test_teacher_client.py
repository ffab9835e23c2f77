"""A teacher is asked within its budget, and whatever it does costs only answers. The server is a real one."""

import json
import logging
import math
import multiprocessing
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from conf.sections.lessons import EndpointConfig
from models.hf import teacher_client
from models.hf.teacher_client import CONCURRENT_REQUESTS, MAX_FAILURES, Question, ask
from tests.models.support.chat_server import Reply, chat_server, said

KEY = "sk-planted-5e8d"


def config(url: str, **changes: Any) -> EndpointConfig:
    return EndpointConfig(base_url=url, model="m", **changes)


def question(text: str, number: int = 0) -> Question:
    return Question([{"role": "user", "content": text}], number)


def questions(count: int) -> list[Question]:
    return [question(f"What is {number} + 1?") for number in range(count)]


def echo(request: dict[str, Any]) -> Reply:
    return said(f"to {request['messages'][-1]['content']}")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_client, "RETRIES", 0)
    monkeypatch.setattr(teacher_client, "TIMEOUT", 5.0)


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_client, "CONCURRENT_REQUESTS", 1)


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_TEACHER_KEY", KEY)
    asked = [*questions(6), question("What is 0 + 1?", number=1)]
    with chat_server(echo) as server:
        found = ask(asked, config(server.url, max_tokens=77), tmp_path)
    assert found.answers == [f"to What is {number} + 1?" for number in (0, 1, 2, 3, 4, 5, 0)]
    assert (found.asked, found.cached, found.stopped, found.failed) == (7, 0, None, {})
    assert found.tokens == 7 * 30
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert {request["max_tokens"] for request in server.requests} == {77}
    assert sorted(request["temperature"] for request in server.requests) == [0.0] * 6 + [0.7]
    assert not any("seed" in request for request in server.requests)


def test_nothing_is_asked_twice_and_the_cache_is_free(tmp_path: Path) -> None:
    with chat_server(echo) as server:
        first = ask(questions(3), config(server.url), tmp_path)
        again = ask(questions(4), config(server.url), tmp_path)
        assert again.answers[:3] == first.answers
        assert (again.asked, again.cached, again.tokens) == (1, 3, 30)
        ask(questions(3), config(server.url, max_tokens=7), tmp_path)
        assert len(server.requests) == 7  # another length is another question
    down = ask(questions(4), config(server.url, budget_tokens=1), tmp_path)
    assert (down.answers, down.tokens, down.stopped) == (again.answers, 0, None)


def test_the_key_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_TEACHER_KEY", KEY)
    caplog.set_level(logging.DEBUG, "nightschool")
    caplog.set_level(logging.INFO, "httpx")
    refusal = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    with chat_server(lambda request: Reply(refusal, 401)) as server:
        found = ask(questions(3), config(server.url), tmp_path)
    assert found.stopped == "HTTP 401"
    assert KEY not in f"{found} {caplog.text}"
    monkeypatch.setenv("NIGHTSCHOOL_TEACHER_KEY", f"{KEY}\nX-Other: 1")  # which no header can hold
    with chat_server(echo) as server:
        found = ask(questions(3), config(server.url), tmp_path)
    assert found.answers == [None] * 3
    assert KEY not in f"{found} {caplog.text}"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(b"<html>Welcome!</html>", kind="text/html"), "no chat completion"),
        (Reply(b'{"choices": []}'), "no chat completion"),
        (Reply(b'{"choices": ['), "no chat completion (JSONDecodeError)"),
        (Reply(b"[1, 2]"), "no chat completion"),
        (said(""), "an empty answer"),
        (Reply(b"{}", 500), "HTTP 500"),
        (Reply(b"slow down", 429, "text/plain"), "HTTP 429"),
        (Reply(b"", 302, headers={"Location": "/elsewhere/302"}), None),
        (Reply(said("late").body, seconds=3), "no answer in 0.5 s"),
    ],
)
def test_bad_servers_cost_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, why: str | None
) -> None:
    if reply.seconds:
        monkeypatch.setattr(teacher_client, "TIMEOUT", 0.5)
    with chat_server(lambda request: reply) as server:
        found = ask(questions(9), config(server.url), tmp_path)
    assert found.answers == [None] * 9
    assert found.stopped is not None
    if why is not None:
        assert set(found.failed) == {why}
        assert found.stopped.startswith(why)
    assert len(server.requests) < 9  # it is left alone
    assert not list(tmp_path.glob("*.json"))  # nothing is kept as an answer


def test_a_server_that_is_down(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = ask(questions(9), config(f"http://127.0.0.1:{port}/v1"), tmp_path)
    assert found.stopped == "no connection"
    assert found.asked <= CONCURRENT_REQUESTS
    assert found.tokens == 0
    assert ask(questions(2), config("no url at all"), tmp_path).stopped is not None


@pytest.mark.usefixtures("one_at_a_time")
def test_only_failures_in_a_row_stop_it(tmp_path: Path) -> None:
    count = iter(range(100))
    with chat_server(lambda _: echo(_) if next(count) % MAX_FAILURES == 2 else Reply(b"{}", 500)) as server:
        found = ask(questions(9), config(server.url), tmp_path)
    assert [place for place, answer in enumerate(found.answers) if answer is not None] == [2, 5, 8]
    assert (found.stopped, found.failed) == (None, {"HTTP 500": 6})


@pytest.mark.usefixtures("one_at_a_time")
def test_a_night_asks_nothing_once_its_one_budget_is_spent_however_often_it_asks(tmp_path: Path) -> None:
    with chat_server(lambda request: said("yes", 10, 90)) as server:
        some = config(server.url, budget_tokens=300)
        first, second = (ask(questions(count), some, tmp_path, night="tonight") for count in (2, 9))
        assert len(server.requests) == 3
        next_night = ask(questions(9), some, tmp_path, night="tomorrow")
    assert (first.asked, first.tokens, first.stopped) == (2, 200, None)
    assert (second.asked, second.cached, second.tokens) == (1, 2, 100)
    assert [answer is not None for answer in second.answers] == [True] * 3 + [False] * 6
    assert second.stopped == "the night's budget of 300 tokens (budget_tokens) is spent"
    assert (next_night.asked, next_night.cached, next_night.tokens) == (3, 3, 300)


def test_a_killed_night_remembers_what_it_spent(tmp_path: Path) -> None:
    """The first two questions have their answers when the sixth is asked, four at a time."""

    def reply(request: dict[str, Any]) -> Reply:
        if len(server.requests) == 6:
            process.kill()
        return said("yes", 10, 90)

    with chat_server(reply) as server:
        night = questions(9), config(server.url, budget_tokens=10_000), tmp_path, math.inf, "tonight"
        process = multiprocessing.get_context("spawn").Process(target=ask, args=night)
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        resumed = ask(questions(9), config(server.url, budget_tokens=200), tmp_path, night="tonight")
    assert resumed.cached >= 2
    assert (resumed.asked, resumed.tokens) == (0, 0)
    assert resumed.stopped is not None


@pytest.mark.parametrize("usage", [(-5, 10), ("many", 10), (None, None)])
def test_an_answer_without_a_sensible_usage_counts_as_all_it_may_have(tmp_path: Path, usage: tuple[Any, Any]) -> None:
    with chat_server(lambda request: said("yes", *usage)) as server:
        found = ask(questions(1), config(server.url, max_tokens=100), tmp_path)
    assert found.answers == ["yes"]
    assert found.tokens == len("What is 0 + 1?") + 100


@pytest.mark.parametrize(
    ("minutes", "left", "stopped"),
    [
        (0.005, 60.0, "its 0.005 minutes (budget_minutes) are over"),
        (20.0, 0.3, "the night has no more time for it"),
        (20.0, -100.0, "the night has no more time for it"),
    ],
)
def test_it_ends_with_its_minutes_or_the_nights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, left: float, stopped: str
) -> None:
    monkeypatch.setattr(teacher_client, "TIMEOUT", 60.0)
    with chat_server(lambda request: Reply(echo(request).body, seconds=30)) as server:
        slow = config(server.url, budget_minutes=minutes)
        found = ask(questions(3), slow, tmp_path, time.time() + left)
    assert (found.answers, found.stopped) == ([None] * 3, stopped)


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    with chat_server(lambda request: Reply(said("x").body.replace(b'"x"', b'"a\\ud800b"'))) as server:
        assert ask(questions(1), config(server.url), tmp_path).answers == ["a?b"]
