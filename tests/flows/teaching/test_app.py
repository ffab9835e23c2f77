"""Who may use the classroom: requests as another page, another program or an attacker would send them."""

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from flows.teaching.answers import Question, Shown
from tests.flows.nights import finished_night
from tests.flows.teaching.conftest import TOKEN, School, ask_page, page_of

HTML = "text/html; charset=utf-8"


@pytest.fixture
def page(school: School) -> Iterator[httpx.Client]:
    """A client that sends what the page does, without a session so far."""
    with page_of(school.open()) as here:
        headers = {"Origin": here, "Sec-Fetch-Site": "same-origin"}
        with httpx.Client(base_url=here, headers=headers, timeout=30) as client:
            yield client


def test_a_page_still_open_at_the_end_is_no_error(school: School, capfd: pytest.CaptureFixture[str]) -> None:
    with httpx.Client() as client:
        with page_of(school.open()) as here:
            client.base_url, client.headers["Origin"] = here, here
            assert client.post("/api/session", json={"token": TOKEN}).status_code == 200
            lines = client.send(client.build_request("GET", "/api/events"), stream=True).iter_lines()
            assert next(lines) == "event: state"
        time.sleep(0.2)
    assert "Traceback" not in capfd.readouterr().err


@pytest.fixture
def owner(page: httpx.Client) -> httpx.Client:
    assert page.post("/api/session", json={"token": TOKEN}).status_code == 200
    return page


def test_a_day_through_the_endpoints(owner: httpx.Client) -> None:
    answers = ask_page(owner)
    assert {*answers[0]} == {"id", "text", "html", "finished", "count"}
    before = owner.get("/api/state").json()["day"]
    lesson = owner.post("/api/lesson", json={"kind": "pick", "answer": answers[1]["id"]}).json()
    assert {"lesson", "learned", "seconds", "change_nats", "kl", "journal"} <= lesson.keys()
    state = owner.get("/api/state").json()
    assert {"champion", "day", "lessons", "guessed", "blind"} <= state.keys()
    assert [one["id"] for one in state["lessons"]] == [lesson["lesson"]]
    with owner.stream("GET", "/api/events") as events:
        assert json.loads(next(line for line in events.iter_lines() if line.startswith("data"))[6:]) == state
    assert owner.request("DELETE", f"/api/lesson/{lesson['lesson']}", json={}).status_code == 200
    assert owner.get("/api/state").json()["day"] == before
    assert owner.post("/api/live", json={"on": False}).json() == {"live": False}
    assert owner.post("/api/stop", json={}).status_code == 200


def test_an_answer_that_was_stopped_before_its_first_word_has_no_why(school: School) -> None:
    with page_of(room := school.open()) as here, httpx.Client(base_url=here, headers={"Origin": here}) as client:
        client.post("/api/session", json={"token": TOKEN})
        room.questions.add(Question("1", [{"role": "user", "content": "7 + 5?"}], {"1-1": Shown("1-1", "", ["day"])}))
        response = client.post("/api/blame", json={"answer": "1-1"})
    assert (response.status_code, response.json()["error"]) == (400, "this answer was stopped before its first word")


def test_without_the_registry_a_why_says_what_is_missing(owner: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask_page(owner)[0]["id"]
    monkeypatch.setattr("flows.web.health.open_registry", Mock(side_effect=InputError("MLflow does not answer")))
    response = owner.post("/api/blame", json={"answer": answer})
    assert (response.status_code, response.json()["error"]) == (507, "MLflow does not answer")


def test_the_models_card(school: School, owner: httpx.Client) -> None:
    for number in (1, 0):
        owner.post("/api/lesson", json={"kind": "pick", "answer": ask_page(owner)[number]["id"]})
    card = owner.get("/api/model").json()
    assert (card["name"], card["champion"], card["report"]) == ("starter", school.champion.name, False)
    (day,) = card["days"]  # before the first pick, the day copy equals the champion: no blind test
    assert (day["picks"], day["chance"]) == (1, 0.8)
    assert owner.get("/report").json() == {"error": "there is no report yet"}
    night = finished_night(school.home, "2026-11-20", load_night(STARTER))
    (night / "report.html").write_text("<style>b { color: red }</style>")
    assert owner.get("/api/model").json()["report"]
    report = owner.get("/report")
    assert (report.text, report.headers["content-type"]) == ((night / "report.html").read_text(), HTML)
    assert report.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")


def test_the_link_of_a_shared_page_works_once(school: School) -> None:
    with page_of(school.open(), once=True) as here, httpx.Client(base_url=here, headers={"Origin": here}) as client:
        assert client.post("/api/session", json={"token": "guess"}).status_code == 401
        assert client.post("/api/session", json={"token": TOKEN}).status_code == 200
        assert client.get("/api/state").status_code == 200
        assert httpx.post(f"{here}/api/session", json={"token": TOKEN}, headers={"Origin": here}).status_code == 401


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),  # a page on another port
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Host": "evil.example"}, 400),  # DNS rebinding
    ],
)
def test_another_page_changes_nothing(owner: httpx.Client, method: str, headers: dict[str, str], status: int) -> None:
    path = "/api/lesson" if method == "POST" else "/api/lesson/1"
    content = json.dumps({"kind": "words", "text": "7 + 5 = 12"})
    kinds = {"Content-Type": "application/json"}
    assert owner.request(method, path, content=content, headers=kinds | headers).status_code == status
    assert owner.get("/api/state").json()["lessons"] == []


@pytest.mark.parametrize(
    "path", ["/api/state", "/api/events", "/api/ask", "/api/lesson", "/api/stop", "/api/night", "/report"]
)
def test_without_the_token_there_is_nothing_to_see(page: httpx.Client, path: str) -> None:
    page.cookies.set(f"nightschool-{page.base_url.port}", "guessed")
    assert page.post("/api/session", json={"token": "guess"}).status_code == 401
    method = "GET" if path in ("/api/state", "/api/events", "/report") else "POST"
    response = page.request(method, path, **({} if method == "GET" else {"json": {"text": "7 + 5?"}}))
    assert response.status_code == 401
    assert "open the link" in response.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/api/ask", {"text": "7" * 1_000_000}, 413, "the request is longer than 64,000 bytes: shorten the text"),
        ("/api/ask", {"text": " "}, 400, "the question is empty"),
        ("/api/ask", {}, 400, "text: is missing"),
        ("/api/ask", {"text": 7}, 400, "text: not a text"),
        ("/api/lesson", {"kind": "hug"}, 400, "kind: 'hug' is not one of pick, none, correct, praise, blame, "),
        ("/api/lesson", {"kind": "pick"}, 400, "answer: is missing"),
        ("/api/lesson", {"kind": "wrong_from", "answer": "1", "from_char": "x"}, 400, "from_char: not a whole number"),
        *(("/api/ask", no_object, 400, "the request is not ") for no_object in (b"{", b"[]", b"\xff", b"[" * 50_000)),
    ],
)
def test_a_bad_request_is_refused_in_one_line(
    owner: httpx.Client, path: str, body: Any, status: int, reason: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body)
    response = owner.post(path, content=content, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"][: len(reason)]) == (status, reason)


def test_no_path_leads_out(owner: httpx.Client) -> None:
    connection = HTTPConnection(owner.base_url.host, owner.base_url.port)  # sends a path as it stands
    cookie = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    for path in ("/../conftest.py", "/..%2fapp.py", "/classroom.py", "//etc/passwd", "/api/lesson/../x"):
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        assert (answer.status, answer.read() and path) in [(404, path), (405, path)]


def test_no_other_page_may_frame_read_or_keep_it(page: httpx.Client) -> None:
    headers = page.get("/").headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    cookie = page.post("/api/session", json={"token": TOKEN}).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert cookie.startswith(f"nightschool-{page.base_url.port}=")
