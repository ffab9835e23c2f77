"""Convert the rows of common datasets to journal entries; a dataset's columns determine its format."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from conf.storage.journal import IMPORTED
from rewards.data.solution_formats import truth_of

Row = Mapping[str, Any]
Turns = list[dict[str, str]]
Fields = dict[str, Any]  # an entry's fields, without version and time

ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "developer": "system"}
SCORES = ("score", "fine-grained_score", "overall_score", "rating")
# Columns of worked solutions; the first that has a value is used.
CHATS = ("messages", "conversations")
QUESTIONS = ("prompt", "question", "problem", "instruction")
RESPONSES = ("response", "solution", "completion", "output")
DIALOGUE = re.compile(r"\n\n(Human|Assistant): ?")


def converter(columns: Iterable[str]) -> Callable[[Row, str], Fields] | None:
    """Return the function that converts rows with these columns; None if the columns are not recognised.

    The function takes a row and a default teacher, for rows that name none. It raises ValueError for an unusable row.
    """
    present = set(columns)
    for required, convert in FORMATS:
        if present.issuperset(required):
            return convert
    solved = present & {*CHATS} or (present & {*QUESTIONS} and present & {*RESPONSES})
    return worked_solution if solved else None


def known_formats() -> str:
    """Return the columns of each known format, as text for an error message."""
    solutions = [" or ".join(CHATS), f"{' or '.join(QUESTIONS)} + {' or '.join(RESPONSES)}"]
    return "; ".join([*(" + ".join(required) for required, _ in FORMATS), *solutions])


def worked_solution(row: Row, teacher: str) -> Fields:
    """Return the fields of a trace, made from a question and its solution or from a chat up to its last answer.

    `teacher`: used if the row names none. Raises ValueError for a row without a question or a solution.
    """
    question, response = _first(row, (*CHATS, *QUESTIONS)), _first(row, RESPONSES)
    if question is None:
        raise ValueError(f"no question: none of the columns {', '.join((*QUESTIONS, *CHATS))} has a value")
    if isinstance(question, str) and question == row.get("instruction") and (given := row.get("input")):
        question = f"{question}\n\n{given}"  # Alpaca
    if not (messages := _prompt(question)):
        raise ValueError("messages: there are none")
    if messages[-1]["role"] == "user" and response is not None:
        answer = _answer(response)
    else:
        last = max((index for index, turn in enumerate(messages) if turn["role"] == "assistant"), default=None)
        if last is None:
            raise ValueError(f"no solution: none of the columns {', '.join(RESPONSES)}, and no turn of an assistant")
        messages, answer = messages[:last], messages[last]["content"]
    known = {"benchmark": row.get("benchmark"), "truth": truth_of(row)}
    teacher = str(row.get("teacher") or row.get("model") or teacher)
    given = {name: str(value) for name, value in known.items() if value is not None}
    return {"kind": "trace", "messages": messages, "response": answer, "teacher": teacher, **given}


def _pair(row: Row, teacher: str) -> Fields:
    """Convert a preference pair in TRL's format. The prompt has its own column, or both answers begin with it."""
    chosen, rejected = row["chosen"], row["rejected"]
    if isinstance(chosen, str) and isinstance(rejected, str):
        prompt = row.get("prompt")
        if prompt is None:
            prompt, chosen, rejected = _common_prompt(chosen, rejected)
        return _preference(_prompt(prompt), [chosen, rejected])
    ours, theirs = _turns(chosen), _turns(rejected)
    if ours == theirs:
        raise ValueError("both answers are the same")
    common = _alike(ours, theirs)
    messages = ours[:common]
    if row.get("prompt") is not None and not any(turn["role"] == "user" for turn in messages):
        messages = _prompt(row["prompt"]) + messages
    return _preference(messages, [_only_answer(ours[common:]), _only_answer(theirs[common:])])


def _openai_pair(row: Row, teacher: str) -> Fields:
    """Convert a pair in OpenAI's preference fine-tuning format."""
    answers = [_only_answer(_turns(row[side])) for side in ("preferred_output", "non_preferred_output")]
    return _preference(_prompt(row["input"]["messages"]), answers)


def _ranking(row: Row, teacher: str) -> Fields:
    """Convert UltraFeedback's scored answers to a preference for the best one over all that score lower."""
    scored = [(score, item["response"]) for item in row["completions"] if (score := _score(item)) is not None]
    best, winner = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    shown = [winner, *(text for score, text in scored if score < best and text != winner)]
    if len(shown) < 2:
        raise ValueError("no answer scores better than another")
    return _preference(_prompt(row["prompt"] if "prompt" in row else row["instruction"]), shown)


def _labelled(row: Row, teacher: str) -> Fields:
    """Convert TRL's unpaired preference: an answer labelled true (good) or false (bad)."""
    if not isinstance(row["label"], bool):
        raise ValueError(f"label is {row['label']!r}, not true or false")
    messages, response, value = _prompt(row["prompt"]), _answer(row["completion"]), 1.0 if row["label"] else -1.0
    return {"kind": "feedback", "messages": messages, "response": response, "value": value}


# The first format whose columns are all present is used; worked solutions are tried last.
FORMATS: Sequence[tuple[tuple[str, ...], Callable[[Row, str], Fields]]] = (
    (("chosen", "rejected"), _pair),
    (("input", "preferred_output", "non_preferred_output"), _openai_pair),
    (("instruction", "completions"), _ranking),
    (("prompt", "completions"), _ranking),
    (("prompt", "completion", "label"), _labelled),
)


def _preference(messages: Turns, responses: Sequence[str]) -> Fields:
    return {"kind": "preference", "messages": messages, "responses": list(responses), "chosen": 0, "policy": IMPORTED}


def _first(row: Row, columns: Sequence[str]) -> Any:
    return next((row[column] for column in columns if row.get(column)), None)


def _prompt(prompt: Any) -> Turns:
    """Convert a prompt to turns. It may be a list of turns, a dialogue (`Human: … Assistant: …`), or one question."""
    if not isinstance(prompt, str):
        return _turns(prompt)
    if not DIALOGUE.match(prompt):
        return [{"role": "user", "content": prompt.strip()}]
    _, *parts = DIALOGUE.split(prompt)
    turns = [
        {"role": "user" if speaker == "Human" else "assistant", "content": content.strip()}
        for speaker, content in zip(parts[::2], parts[1::2], strict=True)
    ]
    return turns if turns[-1]["role"] == "user" or turns[-1]["content"] else turns[:-1]


def _turns(messages: Any) -> Turns:
    if not isinstance(messages, list):
        raise ValueError(f"not a list of turns: {str(messages)[:40]!r}")
    return [_turn(message) for message in messages]


def _turn(message: Any) -> dict[str, str]:
    if not isinstance(message, Mapping):
        raise ValueError(f"not a turn: {str(message)[:40]!r}")
    role = message.get("role") or message.get("from")
    content = message.get("content") if message.get("content") is not None else message.get("value")
    return {"role": ROLES.get(str(role), str(role)), "content": _text(content)}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) and part.get("text") for part in content):
        return "".join(str(part["text"]) for part in content)
    raise ValueError("a turn without text")


def _answer(completion: Any) -> str:
    return completion if isinstance(completion, str) else _only_answer(_turns(completion))


def _only_answer(turns: Turns) -> str:
    if [turn["role"] for turn in turns] != ["assistant"]:
        raise ValueError(f"an answer of {len(turns)} turns; it must be one turn of the assistant")
    return turns[0]["content"]


def _common_prompt(chosen: str, rejected: str) -> tuple[str, str, str]:
    """Split two texts into their common prompt and the two answers, and return all three.

    In a dialogue, the prompt ends before the last `Assistant:`; in other texts, it is the longest common prefix, as in
    TRL's `extract_prompt`.
    """
    cuts = [text.rfind("\n\nAssistant:") for text in (chosen, rejected)]
    if min(cuts) > 0 and chosen[: cuts[0]] == rejected[: cuts[1]]:
        after = cuts[0] + len("\n\nAssistant:")
        return chosen[: cuts[0]], chosen[after:].strip(), rejected[after:].strip()
    cut = _alike(chosen, rejected)
    cut -= cut > 0 and chosen[cut - 1] == " "
    return chosen[:cut], chosen[cut:].strip(), rejected[cut:].strip()


def _alike(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the length of the longest common prefix of two sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _score(item: Mapping[str, Any]) -> float | None:
    value = next((item[name] for name in SCORES if item.get(name) is not None), None)
    try:
        score = float(value)  # pyrefly: ignore[bad-argument-type]  # anything else raises
    except (TypeError, ValueError):  # missing, or "N/A"
        return None
    return None if math.isnan(score) else score
