"""Rows of the data sets that people already have, as entries of the journal; the columns say which form they are in."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conf.storage.journal import IMPORTED
from rewards.data.solution_formats import truth_of

Row = Mapping[str, Any]
Turns = list[dict[str, str]]
Fields = dict[str, Any]  # of an entry, without version and time

ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "developer": "system"}
SCORES = ("score", "fine-grained_score", "overall_score", "rating")
DIALOGUE = re.compile(r"\n\n(Human|Assistant): ?")


def converter(columns: Iterable[str]) -> Callable[[Row, str], Fields] | None:
    """How a row with these columns becomes an entry; None where no form fits.

    It takes a row and who taught where the row does not say, and raises ValueError for a row that makes no entry.
    """
    there = set(columns)
    return next((form for needed, form in FORMS if there.issuperset(needed)), None)


def known_forms() -> str:
    """The columns of each form, for a person."""
    return "; ".join(" + ".join(needed) for needed, _ in FORMS)


def _pair(row: Row, teacher: str) -> Fields:
    """TRL's preference pair; the prompt stands in a column of its own, or begins both answers."""
    chosen, rejected = row["chosen"], row["rejected"]
    if isinstance(chosen, str) and isinstance(rejected, str):
        prompt = row.get("prompt")
        if prompt is None:
            prompt, chosen, rejected = _text_in_common(chosen, rejected)
        return _preference(_asked(prompt), [chosen, rejected], 0)
    ours, theirs = _turns(chosen), _turns(rejected)
    if ours == theirs:
        raise ValueError("both answers are the same")
    common = next((place for place, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(ours))
    before = ours[:common]
    if row.get("prompt") is not None and not any(turn["role"] == "user" for turn in before):
        before = _asked(row["prompt"]) + before
    return _preference(before, [_only_answer(ours[common:]), _only_answer(theirs[common:])], 0)


def _openai_pair(row: Row, teacher: str) -> Fields:
    """OpenAI's preference fine-tuning format."""
    answers = [_only_answer(_turns(row[side])) for side in ("preferred_output", "non_preferred_output")]
    return _preference(_asked(row["input"]["messages"]), answers, 0)


def _ranking(row: Row, teacher: str) -> Fields:
    """UltraFeedback's answers with their scores: the best against all that are worse."""
    scored = [(score, item["response"]) for item in row["completions"] if (score := _score(item)) is not None]
    best, winner = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    shown = [winner, *(text for score, text in scored if score < best and text != winner)]
    if len(shown) < 2:
        raise ValueError("no answer scores better than another")
    return _preference(_question(row), shown, 0)


def _labelled(row: Row, teacher: str) -> Fields:
    """TRL's unpaired preference: an answer, good or bad."""
    if not isinstance(row["label"], bool):
        raise ValueError(f"label is {row['label']!r}, not true or false")
    value = 1.0 if row["label"] else -1.0
    return {"kind": "feedback", "messages": _question(row), "response": _answer(row["completion"]), "value": value}


def _completed(row: Row, teacher: str) -> Fields:
    return _trace(_question(row), _answer(row["completion"]), row, teacher)


def _responded(row: Row, teacher: str) -> Fields:
    return _trace(_question(row), _answer(row["response"]), row, teacher)


def _chat(row: Row, teacher: str) -> Fields:
    turns = _turns(row["messages"] if "messages" in row else row["conversations"])
    last = max((place for place, turn in enumerate(turns) if turn["role"] == "assistant"), default=None)
    if last is None:
        raise ValueError("no turn of an assistant")
    return _trace(turns[:last], turns[last]["content"], row, teacher)


# The first whose columns are all there.
FORMS: Sequence[tuple[tuple[str, ...], Callable[[Row, str], Fields]]] = (
    (("chosen", "rejected"), _pair),
    (("input", "preferred_output", "non_preferred_output"), _openai_pair),
    (("instruction", "completions"), _ranking),
    (("prompt", "completions"), _ranking),
    (("prompt", "completion", "label"), _labelled),
    (("messages",), _chat),
    (("conversations",), _chat),
    (("prompt", "completion"), _completed),
    (("prompt", "response"), _responded),
    (("instruction", "response"), _responded),
)


def _preference(messages: Turns, responses: Sequence[str], chosen: int) -> Fields:
    answers = {"responses": list(responses), "chosen": chosen, "policy": IMPORTED}
    return {"kind": "preference", "messages": messages, **answers}


def _trace(messages: Turns, response: str, row: Row, teacher: str) -> Fields:
    known = {"benchmark": row.get("benchmark"), "truth": truth_of(row)}
    told = {name: str(value) for name, value in known.items() if value is not None}
    by = str(row.get("teacher") or row.get("model") or teacher)
    return {"kind": "trace", "messages": messages, "response": response, "teacher": by, **told}


def _question(row: Row) -> Turns:
    return _asked(row["prompt"] if "prompt" in row else row["instruction"])


def _asked(prompt: Any) -> Turns:
    """A prompt as turns: a list of them, a dialogue as text (`Human: … Assistant: …`), or one question."""
    if not isinstance(prompt, str):
        return _turns(prompt)
    if not DIALOGUE.match(prompt):
        return [{"role": "user", "content": prompt.strip()}]
    _, *parts = DIALOGUE.split(prompt)
    turns = [
        {"role": "user" if who == "Human" else "assistant", "content": said.strip()}
        for who, said in zip(parts[::2], parts[1::2], strict=True)
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
    """A turn's text; OpenAI's parts put together. Raises ValueError for a part that is no text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) and part.get("text") for part in content):
        return "".join(str(part["text"]) for part in content)
    raise ValueError("a turn without text")


def _answer(completion: Any) -> str:
    return completion if isinstance(completion, str) else _only_answer(_turns(completion))


def _only_answer(turns: Turns) -> str:
    if [turn["role"] for turn in turns] != ["assistant"]:
        raise ValueError(f"an answer of {len(turns)} turns; one turn of the assistant is what can be learnt")
    return turns[0]["content"]


def _text_in_common(chosen: str, rejected: str) -> tuple[str, str, str]:
    """Prompt and answers, where both texts begin with the prompt.

    A dialogue ends with its last `Assistant:`; of other texts the prompt is the longest common beginning, as TRL's
    `extract_prompt` has it.
    """
    cuts = [text.rfind("\n\nAssistant:") for text in (chosen, rejected)]
    if min(cuts) > 0 and chosen[: cuts[0]] == rejected[: cuts[1]]:
        after = cuts[0] + len("\n\nAssistant:")
        return chosen[: cuts[0]], chosen[after:].strip(), rejected[after:].strip()
    pairs = enumerate(zip(chosen, rejected, strict=False))
    cut = next((place for place, (a, b) in pairs if a != b), min(len(chosen), len(rejected)))
    cut -= cut > 0 and chosen[cut - 1] == " "
    return chosen[:cut], chosen[cut:].strip(), rejected[cut:].strip()


def _score(item: Mapping[str, Any]) -> float | None:
    said = next((item[name] for name in SCORES if item.get(name) is not None), None)
    try:
        score = float(said)  # pyright: ignore[reportArgumentType]  # whatever it is, it is caught
    except (TypeError, ValueError):  # none, or "N/A"
        return None
    return None if math.isnan(score) else score
