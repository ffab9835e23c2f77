"""A teacher is asked within its budget, and whatever it does costs answers only. The server is a real one."""

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

from conf.sections.lessons import TeacherConfig
from models.hf import teacher_client
from models.hf.teacher_client import AT_ONCE, PATIENCE, Question, ask
from tests.models.chat_server import Reply, chat_server, said

KEY = "sk-planted-5e8d"
WORST = len("What is 0 + 1?") + 16 + 128 + 100  # tokens of one of the `questions` with an answer of 100


def config(url: str, **changes: Any) -> TeacherConfig:
    return TeacherConfig(base_url=url, model="m", **{"retries": 0, "timeout_seconds": 5.0, **changes})


def questions(count: int) -> list[Question]:
    return [Question((("user", f"What is {number} + 1?"),)) for number in range(count)]


def echo(request: dict[str, Any]) -> Reply:
    return said(f"to {request['messages'][-1]['content']}")


def test_answers_come_in_the_order_of_the_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTSCHOOL_TEACHER_KEY", KEY)
    asked = [*questions(6), Question((("user", "What is 0 + 1?"),), number=1)]
    with chat_server(echo) as server:
        found = ask(asked, config(server.url, max_tokens=77), tmp_path)
    assert found.answers == [f"to What is {number} + 1?" for number in (0, 1, 2, 3, 4, 5, 0)]
    assert (found.asked, found.cached, found.stopped, found.failed) == (7, 0, None, {})
    assert found.tokens == 7 * 30
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert {request["max_tokens"] for request in server.requests} == {77}
    assert sorted(request["temperature"] for request in server.requests) == [0.0] * 6 + [0.7]
    assert not any("seed" in request for request in server.requests)


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    with chat_server(echo) as server:
        first = ask(questions(3), config(server.url), tmp_path)
        again = ask(questions(4), config(server.url), tmp_path)
        assert len(server.requests) == 4
        assert again.answers[:3] == first.answers
        assert (again.asked, again.cached, again.tokens) == (1, 3, 30)
        ask(questions(3), config(server.url, max_tokens=7), tmp_path)
        assert len(server.requests) == 7  # another question
        damaged, *_ = tmp_path.glob("*.json")
        damaged.write_text('{"answer": 3}')
        assert ask(questions(4), config(server.url), tmp_path).answers == again.answers
        assert len(server.requests) <= 8
    gone = ask(questions(4), config(server.url), tmp_path)  # the server is down, and nobody needs it
    assert gone.answers == again.answers


def test_the_key_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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
        (Reply(b"", kind="text/plain"), "no chat completion"),
        (Reply(b'{"choices": []}'), "no chat completion"),
        (Reply(b'{"choices": [{"message": null}]}'), "no chat completion"),
        (Reply(b'{"error": "no"}'), "no chat completion"),
        (Reply(b'{"choices": ['), "no chat completion (JSONDecodeError)"),
        (Reply(b"[1, 2]"), "no chat completion"),
        (Reply(b"null"), "no chat completion"),
        (said(""), "an empty answer"),
        (said(None), "an empty answer"),
        (said([{"type": "text"}]), "an empty answer"),
        (Reply(b"{}", 500), "HTTP 500"),
        (Reply(b"slow down", 429, "text/plain"), "HTTP 429"),
        (Reply(b"no", 404, "text/plain"), "HTTP 404"),
        (Reply(b"", 302, headers={"Location": "/elsewhere/302"}), None),
        (Reply(said("late").body, seconds=3), "no answer in 0.5 s"),
    ],
)
def test_bad_servers_cost_answers_only(tmp_path: Path, reply: Reply, why: str | None) -> None:
    with chat_server(lambda request: reply) as server:
        found = ask(questions(9), config(server.url, timeout_seconds=0.5 if reply.seconds else 5.0), tmp_path)
    assert found.answers == [None] * 9
    assert found.stopped is not None
    if why is not None:
        assert set(found.failed) == {why}
        assert found.stopped.startswith(why)
    assert len(server.requests) < 9  # it is left alone
    assert not list(tmp_path.glob("*.json"))  # no answer


def test_a_night_has_one_budget_however_often_it_asks(tmp_path: Path) -> None:
    """A second lesson of a night asks with what the first one left; the next night has a budget of its own."""
    with chat_server(lambda request: said("yes", 10, 90)) as server:
        some = config(server.url, max_tokens=100, budget_tokens=WORST + 250)
        first, second = (ask(questions(count), some, tmp_path, night="tonight") for count in (2, 9))
        next_night = ask(questions(9), some, tmp_path, night="tomorrow")
    assert (first.asked, first.tokens, first.stopped) == (2, 200, None)
    assert (second.asked, second.cached, second.tokens, second.stopped) == (1, 2, 100, "its budget was spent")
    assert (next_night.asked, next_night.cached, next_night.tokens) == (3, 3, 300)


def test_a_night_has_one_budget_in_money_too(tmp_path: Path) -> None:
    prices = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_answer_tokens": 10.0}
    with chat_server(lambda request: said("yes", 10, 99)) as server:  # 0.001 each, and at the worst 0.001158
        some = config(server.url, max_tokens=100, budget_usd=0.0025, **prices)
        first, second = (ask(questions(count), some, tmp_path, night="tonight") for count in (1, 9))
    assert (first.asked, second.asked, second.stopped) == (1, 1, "its budget was spent")
    assert second.usd == pytest.approx(0.001)


def test_a_night_that_was_killed_goes_on_with_what_it_has_left(tmp_path: Path) -> None:
    """What was on its way counts at its worst: nobody knows what became of it."""

    def reply(request: dict[str, Any]) -> Reply:
        if len(server.requests) == 3:
            process.kill()
        return said("yes", 10, 90)

    with chat_server(reply) as server:
        some = config(server.url, max_tokens=100, budget_tokens=WORST + 250)
        night = questions(9), some, tmp_path, math.inf, "tonight"
        process = multiprocessing.get_context("spawn").Process(target=ask, args=night)
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        resumed = ask(*night)
    assert (resumed.cached, resumed.asked, resumed.stopped) == (2, 0, "its budget was spent")
    assert len(server.requests) == 3


def test_what_a_night_spent_is_forgotten_where_its_file_was_damaged(tmp_path: Path) -> None:
    with chat_server(echo) as server:
        ask(questions(1), config(server.url), tmp_path, night="tonight")
        for damaged in ("", "{}", "[1]", '["many", 2]', "[null, 2]"):
            (tmp_path / "tonight.spent").write_text(damaged)
            assert ask(questions(1), config(server.url), tmp_path, night="tonight").cached == 1


def test_a_server_that_is_down(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = ask(questions(9), config(f"http://127.0.0.1:{port}/v1"), tmp_path)
    assert found.stopped == "no connection"
    assert found.asked <= AT_ONCE
    assert found.tokens == 0
    assert ask(questions(2), config("no url at all"), tmp_path).stopped is not None


def test_an_answer_now_and_then_is_worth_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_client, "AT_ONCE", 1)
    count = iter(range(100))
    with chat_server(lambda request: echo(request) if next(count) % PATIENCE == 2 else Reply(b"{}", 500)) as server:
        found = ask(questions(9), config(server.url), tmp_path)
    assert [place for place, answer in enumerate(found.answers) if answer is not None] == [2, 5, 8]
    assert (found.stopped, found.failed) == (None, {"HTTP 500": 6})


def test_a_failure_is_tried_again(tmp_path: Path) -> None:
    replies = iter([Reply(b"{}", 500), said("after all")])
    with chat_server(lambda request: next(replies)) as server:
        found = ask(questions(1), config(server.url, retries=1), tmp_path)
    assert found.answers == ["after all"]
    assert found.tokens == 30  # a try that was refused at once costs nothing


@pytest.mark.parametrize(
    ("last", "answers", "tokens"), [(said("after all"), ["after all"], WORST + 30), (Reply(b"{}", 500), [None], WORST)]
)
def test_a_try_that_timed_out_counts_whatever_the_last_one_came_to(
    tmp_path: Path, last: Reply, answers: list[str | None], tokens: int
) -> None:
    replies = iter([Reply(said("late").body, seconds=3), last])
    with chat_server(lambda request: next(replies)) as server:
        some = config(server.url, max_tokens=100, timeout_seconds=1.5, retries=1)
        found = ask(questions(1), some, tmp_path)
    assert len(server.requests) == 2
    assert (found.answers, found.tokens) == (answers, tokens)


def test_the_budget_is_never_exceeded_and_used_up(tmp_path: Path) -> None:
    with chat_server(lambda request: said("yes", 10, 90)) as server:
        found = ask(questions(9), config(server.url, max_tokens=100, budget_tokens=WORST + 250), tmp_path)
    assert found.stopped == "its budget was spent"
    assert (found.asked, found.tokens) == (3, 300)  # the fourth could need 258, and 208 are left
    assert [answer is not None for answer in found.answers] == [True] * 3 + [False] * 6


def test_answers_that_were_cheaper_than_feared_leave_room_for_others(tmp_path: Path) -> None:
    with chat_server(echo) as server:  # 30 tokens each
        found = ask(questions(9), config(server.url, max_tokens=100, budget_tokens=8 * 30 + WORST), tmp_path)
    assert (found.asked, found.tokens, found.stopped) == (9, 270, None)


def test_the_budget_in_money(tmp_path: Path) -> None:
    prices = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_answer_tokens": 10.0}
    with chat_server(lambda request: said("yes", 10, 99)) as server:
        found = ask(questions(9), config(server.url, max_tokens=100, budget_usd=0.0025, **prices), tmp_path / "1")
        assert found.asked == 2  # 0.001 each, and at the worst 0.001158
        assert found.usd == pytest.approx(0.002)
        nothing = ask(questions(9), config(server.url, budget_usd=0.0, **prices), tmp_path / "2")
        assert (nothing.asked, nothing.stopped) == (0, "its budget was spent")


@pytest.mark.parametrize("text", ["12345678901234567890" * 10, r"$\frac{1}{2}+\frac{3}{4}=$ " * 10, "𝔘𒀀" * 25])
@pytest.mark.parametrize("room", [500, 1000, 2000])
def test_a_tokenizer_that_knows_no_word_stays_within_the_budget(tmp_path: Path, text: str, room: int) -> None:
    """Its server counts a token for each byte, and as many more as the chat template has."""

    def reply(request: dict[str, Any]) -> Reply:
        return said("yes", len(request["messages"][-1]["content"].encode()) + 100, request["max_tokens"])

    asked = [Question((("user", f"{number}: {text}"),)) for number in range(9)]
    price = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_answer_tokens": 1.0}
    with chat_server(reply) as server:
        limits = {"budget_tokens": room, "budget_usd": 10.0}, {"budget_tokens": 10**6, "budget_usd": room / 1e6}
        for number, limit in enumerate(limits):
            found = ask(asked, config(server.url, max_tokens=10, **price, **limit), tmp_path / str(number))
            assert found.asked > 0
            assert found.tokens <= room
            assert found.stopped == "its budget was spent"


@pytest.mark.parametrize("usage", [(-5, 10), ("many", 10), (None, None)])
def test_a_usage_that_makes_no_sense_is_taken_for_the_worst(tmp_path: Path, usage: tuple[Any, Any]) -> None:
    with chat_server(lambda request: said("yes", *usage)) as server:
        found = ask(questions(1), config(server.url, max_tokens=100), tmp_path)
    assert found.answers == ["yes"]
    assert found.tokens == WORST


def test_what_may_have_been_charged_counts(tmp_path: Path) -> None:
    with chat_server(lambda request: Reply(said("late").body, seconds=2)) as server:
        found = ask(questions(1), config(server.url, max_tokens=100, timeout_seconds=0.2, retries=1), tmp_path)
    assert found.tokens == 2 * WORST


@pytest.mark.parametrize("room", [1, 2, 3, 4, 5, 7])
def test_tries_that_may_all_be_charged_are_within_the_budget(tmp_path: Path, room: int) -> None:
    some = config("", max_tokens=100, timeout_seconds=0.2, retries=2, budget_tokens=room * WORST)
    with chat_server(lambda request: Reply(said("late").body, seconds=2)) as server:
        found = ask(questions(9), some.model_copy(update={"base_url": server.url}), tmp_path)
    assert len(server.requests) <= room
    assert found.tokens <= some.budget_tokens


def test_its_minutes(tmp_path: Path) -> None:
    with chat_server(lambda request: Reply(echo(request).body, seconds=1.5)) as server:
        found = ask(questions(3), config(server.url, budget_minutes=0.01), tmp_path)
    assert found.answers == [None] * 3
    assert found.stopped == "its 0.01 minutes were over"


@pytest.mark.parametrize("left", [-100.0, 0.0, 0.6])
def test_it_ends_with_the_hours_of_the_night(tmp_path: Path, left: float) -> None:
    with chat_server(lambda request: Reply(echo(request).body, seconds=30)) as server:
        found = ask(questions(3), config(server.url, timeout_seconds=60.0), tmp_path, time.time() + left)
    assert found.answers == [None] * 3
    assert found.stopped == "the night's hours left no more time for it"


def test_half_a_character_is_replaced(tmp_path: Path) -> None:
    with chat_server(lambda request: Reply(said("x").body.replace(b'"x"', b'"a\\ud800b"'))) as server:
        assert ask(questions(1), config(server.url), tmp_path).answers == ["a?b"]
