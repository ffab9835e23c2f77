"""Keeps the conversations of `nightschool serve --record` in the journal, and what clients say about the answers.

A conversation is kept if it is plain text: one with tools, images or a role that the journal does not know is not.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from conf.storage.home import InputError
from conf.storage.journal import CONVERSATION, HELD_OUT, UNFINISHED, entry_of, read_object
from conf.storage.journal_file import Written, append
from models.lessons.preference_data import is_held_out
from tasks.journal.conversations import ANSWERS, Record, Turn, conversation, record

DONE = b"\ndata: [DONE]"  # the last event of a stream; JSON has no line breaks inside its strings
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def record_of(request: bytes, response: bytes) -> dict[str, Any]:
    """Return the arguments of `record` for a conversation. `response`: a completion as JSON, or a whole stream of it.

    Raises ValueError, LookupError, TypeError or AttributeError if the conversation is not to be kept, or is not whole.
    """
    asked, events = json.loads(request), [response]
    if DONE in response:
        events = [line[5:] for line in response.partition(DONE)[0].split(b"\n") if line.startswith(b"data:")]
    completions = [json.loads(event) for event in events]
    texts, ends = dict.fromkeys(range(asked.get("n") or 1), ""), dict[int, bool]()
    for choice in (choice for completion in completions for choice in completion["choices"]):
        index, said = choice["index"], choice.get("message") or choice["delta"]  # an answer, or the next piece of it
        if said.get("tool_calls"):
            raise ValueError("it calls tools")
        texts[index] = texts.get(index, "") + (said.get("content") or "")
        if choice.get("finish_reason"):  # vLLM's `stop_reason`: the stop text that ended the answer, or a token's id
            ends[index] = choice["finish_reason"] == "stop" and not isinstance(choice.get("stop_reason"), str)
    if ends.keys() != texts.keys() or not any(map(str.strip, texts.values())):
        raise ValueError("an answer is not whole, or all are blank")
    if asked.get("tools"):
        raise ValueError("it has tools")
    turns = [_turn(message) for message in asked["messages"]]
    if turns[-1]["role"] != "user" or _is_open_webui_task(turns[-1]["content"]):
        raise ValueError("this is no answer to a person")
    return {
        "name": completions[0]["id"],
        "turns": [*turns, {"role": "assistant", "content": texts[0]}],
        "policy": completions[0]["model"],
        ANSWERS: [*texts.values()] if len(texts) > 1 else [],
        UNFINISHED: [text for index, text in texts.items() if not ends[index]],
    }


def _turn(message: dict[str, Any]) -> Turn:
    """Return a message as a turn of the journal. vLLM joins the parts of a message in the same way.

    Raises ValueError, LookupError or TypeError for what the journal cannot hold, such as tools and images.
    """
    if message.get("tool_calls"):
        raise ValueError("it calls tools")
    content = message["content"]
    text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
    return {"role": ROLES[message["role"]], "content": text}


def _is_open_webui_task(prompt: str) -> bool:
    # Open WebUI 0.11.0 asks for titles, tags and so on with these default prompts (config.py). It removes the key
    # `metadata`, which names the task, before it sends a request (routers/openai.py).
    return prompt.startswith("### Task:\n") and "<chat_history>" in prompt


def judgement(found: Record, key: str, given: Any) -> dict[str, Any]:
    """Return feedback on a recorded answer as fields of a journal line. Raises ValueError if `given` is not valid."""
    answer, last = found.turns[-1]["content"], len(found.answers) - 1
    match key:
        case "value":
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < abs(given) <= 1:
                raise ValueError("value: send a number from -1 (bad) to 1 (good) other than 0")
            return {"kind": "feedback", "response": answer, "value": given}
        case "better":
            if not isinstance(given, str) or not given.strip() or given == answer:
                raise ValueError("better: send the text that the answer should have been")
            return {"kind": "correction", "response": answer, "correction": given}
        case _:
            if not last:
                raise ValueError("chosen: there is only one answer; send value or better")
            if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= last:
                raise ValueError(f"chosen: send a whole number from 0 (the first answer) to {last}")
            return {"kind": "preference", "responses": found.answers, "chosen": given, "policy": found.policy}


class Recorder:
    """Writes conversations and feedback to a journal. `unseen_share`: the share of conversations that is held out."""

    def __init__(self, journal: Path, unseen_share: float) -> None:
        self._journal, self._unseen_share = journal, unseen_share
        self._has_warned = False

    async def kept(self, request: bytes, chunks: AsyncIterator[bytes], is_stream: bool) -> AsyncIterator[bytes]:
        """Yield the chunks of an answer, the last ones only after the conversation is on disk.

        An answer that breaks off is not recorded. If the journal cannot be written, a line is printed once.
        """
        seen, end = bytearray(), bytearray()
        async for chunk in chunks:
            seen += chunk
            if end or not is_stream or DONE in seen[-len(chunk) - len(DONE) :]:
                end += chunk
            else:
                yield chunk
        if not end:
            return
        try:
            found = record_of(request, bytes(seen))
        except (ValueError, LookupError, TypeError, AttributeError):  # not to be kept
            found = {}
        try:
            if found:
                await asyncio.to_thread(record, self._journal, **found)
        except ValueError:  # too long for a line of the journal
            pass
        except InputError as error:
            if not self._has_warned:
                print(f"Conversations are not recorded: {error}", flush=True)
            self._has_warned = True
        yield bytes(end)

    def feedback(self, body: bytes) -> Written:
        """Write a client's feedback on a recorded answer to the journal.

        Raises ValueError if the feedback is not valid, LookupError if no recorded answer has its id, and InputError if
        the journal cannot be written.
        """
        fields = read_object(body)
        given = [key for key in ("value", "better", "chosen") if fields.get(key) is not None]
        if not isinstance(name := fields.get("id"), str):
            raise ValueError("id: send the id of a recorded answer, such as chatcmpl-…")
        if len(given) != 1:
            raise ValueError("send exactly one of value, better and chosen")
        if (found := conversation(self._journal, name)) is None:
            raise LookupError(f"no recorded answer has the id {name!r:.100}")
        line = judgement(found, given[0], fields[given[0]]) | {"messages": found.turns[:-1], CONVERSATION: name}
        line[HELD_OUT] = is_held_out(line["messages"], self._unseen_share)
        return append(self._journal, [entry_of(line | ({UNFINISHED: found.unfinished} if found.unfinished else {}))])
