"""Turns a click in the classroom into journal entries."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, get_args

from conf.sections.teaching import TeachConfig
from conf.storage.journal import CONVERSATION, FROM_CHAR, IMPLICIT, POLICIES, UNFINISHED, Entry, Preference, entry_of
from flows.teaching.answers import Question, Shown
from tasks.teaching.lessons import Lesson

WENT_ON, LEFT = "went_on", "left"  # what the owner implied
Lines = Callable[[str, dict[str, Any]], list[Entry]]  # from the champion's digest and further keys to a lesson's lines
Kind = Literal["pick", "none", "correct", "praise", "blame", "wrong_from", "good_talk", "bad_talk", "words"]
KINDS = get_args(Kind)


def entries_of(
    kind: Kind, question: Question, shown: Shown, champion: str, text: str, from_char: int, keys: dict[str, Any]
) -> list[Entry]:
    """Return the journal entries of a lesson about an answer that was shown.

    `champion`: the champion's digest. `text`: the correction. `from_char`: index at which the answer turns wrong.
    `keys`: extra keys for each entry. Raises ValueError, with a reason for the owner, if the lesson is not valid.
    """
    choices = question.choices
    keys = keys | {"messages": question.messages} | _about(question)
    if unfinished := [*question.unfinished, *_unfinished(choices)]:
        keys[UNFINISHED] = unfinished
    match kind:
        case "pick":
            if len(choices) < 2 or shown not in choices:
                raise ValueError("there is nothing to choose from: rate or correct the answer")
            if shown.corrections:
                raise ValueError("you have corrected this answer: praise it, or pick another")
            responses, chosen = [answer.text for answer in choices], choices.index(shown)
            if not question.pick[0]:  # otherwise the owner knows who wrote them: no blind test
                keys |= {POLICIES: [answer.policies for answer in choices]}
            fields = [{"kind": "preference", "responses": responses, "chosen": chosen, "policy": champion}]
        case "none":
            if not choices:
                raise ValueError("there is no answer to rate: type a better one")
            fields = [{"kind": "feedback", "response": answer.text, "value": -1} for answer in choices]
        case "correct":
            fields = [{"kind": "correction", "response": shown.text, "correction": text}]
        case "praise" | "blame":
            fields = [{"kind": "feedback", "response": shown.better, "value": 1 if kind == "praise" else -1}]
        case "wrong_from":
            if not 0 <= from_char <= (length := len(shown.better)):
                raise ValueError(f"from_char: {from_char} is not in the answer, which has {length} characters")
            fields = [{"kind": "feedback", "response": shown.better, "value": -1, FROM_CHAR: from_char}]
        case "good_talk" | "bad_talk":
            talk = [*question.messages, {"role": "assistant", "content": shown.better}]
            turns = sum(message["role"] == "assistant" for message in talk)
            reward = 1 if kind == "good_talk" else -1
            fields = [{"kind": "conversation", "messages": talk, "rewards": [None] * (turns - 1) + [reward]}]
        case "words":
            raise ValueError("words are about no answer")
    return [entry_of(keys | each) for each in fields]


async def teach_what_is_implied(
    teach: Callable[[Lines], Awaitable[object]],
    config: TeachConfig,
    lessons: Iterable[Lesson],
    earlier: Question | None,
    question: Question,
) -> None:
    """Teach what the owner says by asking `question` after `earlier`: going on, or leaving.

    `lessons`: the day's lessons so far.
    """
    left, size = None if earlier is None or earlier.judged else earlier, config.implicit_reward
    if size and implied(left, question, size, 0.0, {}):
        await teach(lambda _, keys: implied(left, question, size, baseline(lessons, size), keys))


def baseline(lessons: Iterable[Lesson], size: float) -> float:
    """Return the running mean of the rewards that were implied: b ← 0.99·b + 0.01·reward, from 0.

    Such rewards have no natural zero: someone who always goes on says little by going on.
    """
    found = 0.0
    for lesson in lessons:
        if how := lesson.key(IMPLICIT):
            found = 0.99 * found + 0.01 * (size if how == WENT_ON else -size)
    return found


def implied(left: Question | None, question: Question, size: float, usual: float, keys: dict[str, Any]) -> list[Entry]:
    """Return the entries that the owner implies by asking a question, with a reward of ±`size` − `usual`.

    A follow-up implies that the answer before it was good. Any other question implies that all answers to `left` were
    bad. In a chat, the reward also counts, ever less, for the answers before that one. `left`: the previous question,
    or None if there is none or the owner judged any of its answers.
    """
    if len(question.messages) > 1:
        *before, answer, _ = question.messages
        about, how, reward = question, WENT_ON, size - usual
        judged, unfinished = [answer["content"]], [*question.unfinished]
    elif left is not None:
        about, how, reward, before = left, LEFT, -size - usual, left.messages
        judged, unfinished = [answer.text for answer in left.choices], _unfinished(left.choices)
    else:
        return []
    reward = max(-1.0, min(1.0, reward))
    said = keys | {IMPLICIT: how, UNFINISHED: unfinished} | _about(about)
    if about.conversation:
        earlier = sum(turn["role"] == "assistant" for turn in before)
        talk = {"kind": "conversation", "rewards": [None] * earlier + [reward]}
        fields = [{"messages": [*before, {"role": "assistant", "content": text}]} | talk for text in judged]
    else:
        fields = [{"kind": "feedback", "messages": before, "response": text, "value": reward} for text in judged]
    return [entry_of(said | each) for each in fields]


def any_pick(question: Question) -> Preference | None:
    """Return an arbitrary pick among a question's answers, or None if there is nothing to choose from."""
    try:
        (entry,) = entries_of("pick", question, question.choices[0], "none", "", 0, {})
    except (ValueError, IndexError):
        return None
    assert isinstance(entry, Preference)
    return entry


def conversation(lessons: list[Lesson]) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Return the conversation up to the last answer judged good, and the unfinished answers recorded with it.

    Both are empty if no answer was judged good.
    """
    for lesson in reversed(lessons):
        entry: Any = lesson.entries[0]
        good, cut = None, tuple(lesson.key(UNFINISHED) or ())
        match entry.kind:
            case "preference":
                good = entry.responses[entry.chosen]
            case "correction":
                good = entry.correction
            case "feedback" if entry.value > 0:
                good = entry.response
            case "conversation" if entry.values[-1] > 0:
                return entry.turns, cut
        if good is not None:
            return [*entry.turns, {"role": "assistant", "content": good}], cut
    return [], ()


def _about(question: Question) -> dict[str, str]:
    return {CONVERSATION: question.conversation} if question.conversation else {}


def _unfinished(answers: list[Shown]) -> list[str]:
    return [answer.text for answer in answers if not answer.finished]
