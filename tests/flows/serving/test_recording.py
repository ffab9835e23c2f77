"""What `nightschool serve --record` keeps of what passes the gate, and what it does with feedback."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from conf.storage.home import InputError
from conf.storage.journal_file import read_file
from flows.serving import recording
from flows.serving.recording import Recorder, record_of
from flows.web.address import HERE
from flows.web.body import LONGEST
from models.lessons.preference_data import is_held_out
from tests.flows.serving.test_proxy import Served, gate_at
from tests.waiting import awaited

ASKED: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Do owls sleep?"}]
DIGEST = "3f2a9c0d1e4b5a6978c0"
SHARE = 0.5
LIMIT = 20.0  # seconds


class Model:
    """A stand-in for vLLM's chat completions that answers with `texts`, and can stop or die halfway."""

    def __init__(self) -> None:
        self.texts, self.ends = ["By day."], ["stop"]
        self.go_on, self.dies = threading.Event(), False
        self.go_on.set()
        self.count, self.sent = 0, b""
        self.app = Starlette(routes=[Route("/v1/chat/completions", self.complete, methods=["POST"])])

    async def complete(self, request: Request) -> Response:
        asked = await request.json()
        self.count += 1
        common = {"id": f"chatcmpl-{self.count}", "created": 0, "model": DIGEST}
        if asked.get("stream"):
            events = [common | {"object": "chat.completion.chunk", "choices": [one]} for one in self._pieces()]
            if asked.get("stream_options"):
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                events.append(common | {"object": "chat.completion.chunk", "choices": [], "usage": usage})
            lines = [*(json.dumps(event) for event in events), "[DONE]"]
            self.sent = "".join(f"data: {line}\n\n" for line in lines).encode()
            return StreamingResponse(self._parts(), media_type="text/event-stream")
        choices = [
            {"index": i, "message": {"role": "assistant", "content": text, "tool_calls": []}, "finish_reason": end}
            for i, (text, end) in enumerate(zip(self.texts, self.ends, strict=True))
        ]
        self.sent = json.dumps(common | {"object": "chat.completion", "choices": choices}).encode()
        return StreamingResponse(self._parts(), media_type="application/json")

    def _pieces(self) -> Iterator[dict[str, Any]]:
        for i in range(len(self.texts)):
            yield {"index": i, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        for place in range(max(map(len, self.texts))):
            for i, text in enumerate(self.texts):
                if text[place:]:
                    yield {"index": i, "delta": {"content": text[place]}, "finish_reason": None}
        for i, end in enumerate(self.ends):
            yield {"index": i, "delta": {"content": ""}, "finish_reason": end, "stop_reason": None}

    async def _parts(self) -> AsyncIterator[bytes]:
        half = len(self.sent) // 2
        yield self.sent[:half]
        while not self.go_on.is_set():
            await asyncio.sleep(0.01)
        if self.dies:
            raise SystemError("the engine died")
        for at in range(half, len(self.sent), 11):  # no piece holds all of `data: [DONE]`
            yield self.sent[at : at + 11]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def served(model: Model, journal: Path, tmp_path: Path) -> Iterator[Served]:
    with gate_at(HERE, tmp_path, engine=model, recorder=Recorder(journal, SHARE)) as found:
        yield found


def lines(journal: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = []
    for file in journal.glob("*"):
        good, bad = read_file(file)
        assert not bad
        read += [entry.model_dump(exclude={"version", "at", "imported_from"}, exclude_none=True) for _, entry in good]
    return read


def ask(served: Served, **body: Any) -> httpx.Response:
    asked = {"model": "daytime", "messages": ASKED} | body
    return httpx.post(f"{served.url}/v1/chat/completions", json=asked, timeout=LIMIT)


def say(served: Served, **body: Any) -> httpx.Response:
    return httpx.post(f"{served.url}/v1/feedback", json=body)


def recorded(*texts: str, **more: Any) -> dict[str, Any]:
    turns = [*ASKED, {"role": "assistant", "content": texts[0]}]
    several = {"answers": [*texts]} if len(texts) > 1 else {}
    line = {"kind": "conversation", "messages": turns, "policy": DIGEST, "conversation": "chatcmpl-1"}
    return line | several | more


@pytest.mark.parametrize("stream", [False, True])
def test_several_answers_and_one_that_was_cut_off(served: Served, model: Model, journal: Path, stream: bool) -> None:
    model.texts, model.ends = ["By day.", "They sl"], ["stop", "length"]
    answer = ask(served, n=2, stream=stream)
    assert answer.content == model.sent
    assert lines(journal) == [recorded("By day.", "They sl", unfinished=["They sl"])]


@pytest.mark.parametrize(("stop_reason", "unfinished"), [("\n", ["By day."]), (2, []), (None, [])])
def test_an_answer_that_a_stop_text_ended_is_unfinished(stop_reason: Any, unfinished: list[str]) -> None:
    """vLLM names the stop text, or the end token's id if it is not the tokenizer's own."""
    said = {"index": 0, "message": {"content": "By day."}, "finish_reason": "stop", "stop_reason": stop_reason}
    response = json.dumps({"id": "chatcmpl-1", "model": DIGEST, "choices": [said]})
    assert record_of(json.dumps({"messages": ASKED}).encode(), response.encode())["unfinished"] == unfinished


@pytest.mark.parametrize("stream", [False, True])
def test_the_line_is_on_disk_before_the_answer_ends(
    served: Served, model: Model, journal: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on, record = threading.Event(), threading.Event(), recording.record

    def slow(*given: Any, **keys: Any) -> Any:
        writing.set()
        assert go_on.wait(LIMIT)
        return record(*given, **keys)

    monkeypatch.setattr(recording, "record", slow)
    seen = bytearray()

    def read() -> None:
        url, asked = f"{served.url}/v1/chat/completions", {"messages": ASKED, "stream": stream}
        with httpx.stream("POST", url, json=asked, timeout=LIMIT) as answer:
            for chunk in answer.iter_raw():
                seen.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    assert writing.wait(LIMIT)
    assert httpx.get(f"{served.url}/health").status_code == 200  # the gate goes on
    assert b"[DONE]" not in seen
    assert (b"usage" in seen or b'"stop"' in seen) == stream  # the rest of a stream has arrived
    assert lines(journal) == []
    go_on.set()
    reader.join(LIMIT)
    assert (bytes(seen), lines(journal)) == (model.sent, [recorded("By day.")])


@pytest.mark.parametrize("stream", [False, True])
def test_half_an_answer_does_not_look_whole_and_is_not_recorded(
    served: Served, model: Model, journal: Path, stream: bool
) -> None:
    model.dies = True
    with pytest.raises(httpx.RemoteProtocolError):
        ask(served, stream=stream)
    model.dies = False
    model.go_on.clear()
    with pytest.raises(httpx.ReadTimeout):  # this client leaves
        httpx.post(f"{served.url}/v1/chat/completions", json={"messages": ASKED, "stream": stream}, timeout=0.5)
    awaited(lambda: served.gate.under_way == 0)
    assert not journal.exists()


def test_a_stream_that_ends_with_an_error_is_not_recorded(served: Served, model: Model, journal: Path) -> None:
    model.ends = [""]  # no event says how the answer ended
    assert ask(served, stream=True).content == model.sent
    assert not journal.exists()


IMAGE = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": IMAGE}]},
        {"messages": [*ASKED, {"role": "assistant", "content": "", "tool_calls": [CALL]}, *ASKED]},
        {"messages": [*ASKED, {"role": "tool", "content": "1", "tool_call_id": "1"}]},
        {"messages": [*ASKED, {"role": "assistant", "content": "By"}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"messages": [{"role": "user", "content": "x" * 1_000_000}]},
    ],
)
def test_what_the_journal_cannot_hold_is_not_recorded(served: Served, journal: Path, body: dict[str, Any]) -> None:
    assert ask(served, **body).json()["model"] == DIGEST
    assert not journal.exists()
    answer = say(served, id="chatcmpl-1", value=1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, 404)


def test_other_ways_to_write_a_message(served: Served, journal: Path) -> None:
    parts = [{"type": "text", "text": "Do owls"}, {"type": "text", "text": "sleep?"}]
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
    ask(served, messages=messages, logprobs=True)
    turns = lines(journal)[0]["messages"]
    assert turns[:2] == [ASKED[0], {"role": "user", "content": "Do owls\nsleep?"}]


# As Open WebUI 0.11.0 sends them: `generate_chat_completion` in backend/open_webui/routers/openai.py, with the prompts
# of backend/open_webui/config.py (abridged) in the payloads of backend/open_webui/routers/tasks.py.
CHAT = {"stream": True, "model": "daytime", "messages": ASKED, "stream_options": {"include_usage": True}}
CHAT_HISTORY = "### Chat History:\n<chat_history>\nUSER: Do owls sleep?\nASSISTANT: By day.\n</chat_history>"
TASKS = {
    "title": "### Task:\nGenerate a concise title summarizing the chat history.\n### Guidelines:\n- Keep it short.\n",
    "tags": "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n\n",
    "follow_ups": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts.\n",
    "queries": "### Task:\nAnalyze the chat history to determine the necessity of generating search queries.\n\n",
}


def test_open_webui(served: Served, journal: Path) -> None:
    """A chat is recorded; the titles and tags that Open WebUI asks for are not."""
    ask(served, **CHAT)
    for prompt in TASKS.values():
        task = [{"role": "user", "content": prompt + CHAT_HISTORY}]
        assert ask(served, messages=task, stream=False, max_tokens=1000).status_code == 200
    assert lines(journal) == [recorded("By day.")]


def test_without_record_nothing_is_written(model: Model, tmp_path: Path) -> None:
    with gate_at(HERE, tmp_path, engine=model) as served:
        for stream in (False, True):
            assert ask(served, stream=stream).content == model.sent
        refused = say(served, id="chatcmpl-1", value=1)
    assert refused.status_code == 403
    message = "nothing is recorded: start nightschool serve with --record"
    assert refused.json() == {"error": {"message": message, "type": "nightschool", "code": 403}}
    assert [path.name for path in tmp_path.iterdir()] == ["socket"]


def test_a_full_disk_costs_no_answer(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    with gate_at(HERE, tmp_path, engine=model, recorder=Recorder(tmp_path / "file", SHARE)) as served:
        for stream in (False, True):
            assert ask(served, stream=stream).content == model.sent
    assert capsys.readouterr().out.count("Conversations are not recorded: ") == 1


def test_feedback(served: Served, model: Model, journal: Path) -> None:
    model.texts, model.ends = ["By day.", "They sl"], ["stop", "length"]
    ask(served, n=2)
    served.gate.close("the night 2026-11-20 is running", 60)
    said = [{"value": -0.5}, {"better": "All day."}, {"chosen": 1, "value": None}]
    answers = [say(served, id="chatcmpl-1", **one) for one in said]
    (file,) = journal.iterdir()
    assert [answer.json() for answer in answers] == [{"journal": f"{file.name}:{line}"} for line in (2, 3, 4)]
    common = {"messages": ASKED, "conversation": "chatcmpl-1", "unfinished": ["They sl"]}
    common["held_out"] = is_held_out(ASKED, SHARE)
    assert lines(journal)[1:] == [
        common | {"kind": "feedback", "response": "By day.", "value": -0.5},
        common | {"kind": "correction", "response": "By day.", "correction": "All day."},
        common | {"kind": "preference", "responses": ["By day.", "They sl"], "chosen": 1, "policy": DIGEST},
    ]


REFUSED: list[tuple[Any, int, str]] = [
    (b"{", 400, "not valid JSON at column 2"),
    (b"[]", 400, "not a JSON object"),
    ({"value": 1}, 400, "id: send the id of a recorded answer, such as chatcmpl-…"),
    ({"id": "chatcmpl-2"}, 400, "send exactly one of value, better and chosen"),
    ({"id": "chatcmpl-2", "value": 1, "chosen": 0}, 400, "send exactly one of value, better and chosen"),
    ({"id": "chatcmpl-9", "value": 1}, 404, "no recorded answer has the id 'chatcmpl-9'"),
    *(
        ({"id": "chatcmpl-2", "value": value}, 400, "value: send a number from -1 (bad) to 1 (good) other than 0")
        for value in (0, 1.5, True, "1")
    ),
    (b'{"id": "chatcmpl-2", "value": NaN}', 400, "value: send a number from -1 (bad) to 1 (good) other than 0"),
    (
        b'{"id": "\\ud800", "value": 1}',
        400,
        "half of a surrogate pair (an emoji that was cut in two), which is no character",
    ),
    *(
        ({"id": "chatcmpl-2", "better": better}, 400, "better: send the text that the answer should have been")
        for better in (" ", "By day.", 1)
    ),
    ({"id": "chatcmpl-1", "chosen": 0}, 400, "chosen: there is only one answer; send value or better"),
    *(
        ({"id": "chatcmpl-2", "chosen": chosen}, 400, "chosen: send a whole number from 0 (the first answer) to 1")
        for chosen in (2, -1, 1.0, False)
    ),
    ({"id": "chatcmpl-2", "better": "x" * LONGEST}, 413, "the request is longer than 64,000 bytes: shorten the text"),
]


def test_feedback_that_is_refused(served: Served, model: Model, journal: Path) -> None:
    ask(served)
    model.texts, model.ends = ["By day.", "At noon."], ["stop", "stop"]
    ask(served, n=2)
    headers = {"Content-Type": "application/json"}
    for body, status, reason in REFUSED:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        refused = httpx.post(f"{served.url}/v1/feedback", content=content, headers=headers)
        error = {"error": {"message": reason, "type": "nightschool", "code": status}}
        assert (refused.status_code, refused.json()) == (status, error), body
    assert len(lines(journal)) == 2


def test_feedback_from_another_web_page(served: Served) -> None:
    """A page may send plain text without asking the server first; what it has to ask for, it may not do."""
    ask(served)
    for path in ("feedback", "chat/completions"):
        assert httpx.options(f"{served.url}/v1/{path}").json()["error"]["message"] == "web pages may not ask"
    body = json.dumps({"id": "chatcmpl-1", "value": 1})
    sent = httpx.post(f"{served.url}/v1/feedback", content=body, headers={"Content-Type": "text/plain"})
    assert sent.status_code == 415


def test_feedback_that_cannot_be_written(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(served)
    monkeypatch.setattr(recording, "append", Mock(side_effect=InputError("the disk is full; make room")))
    refused = say(served, id="chatcmpl-1", value=1)
    assert (refused.status_code, refused.json()["error"]["message"]) == (507, "the disk is full; make room")
