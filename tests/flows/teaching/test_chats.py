"""Chats: what is recorded, what goes on after a restart, what teaches, and what is left of a deleted conversation."""

from typing import Any

import pytest

from conf.storage.journal import CONVERSATION
from flows.teaching.answers import RefusedError
from flows.teaching.chats import Chats, corrected, grants, is_wish
from flows.teaching.day import CHOICES
from tests.flows.teaching.conftest import ANSWERS, Do, School, ask, settled


async def say(chats: Chats, text: str, name: str = "") -> dict[str, Any]:
    """Say something in a chat, and return what `done` says."""
    *pieces, (last, done) = [event async for event in chats.say(text, name)]
    assert last == "done"
    assert "".join(data["delta"] for _, data in pieces) == done["answer"]["text"]
    return done


def texts(chats: Chats, name: str) -> list[str]:
    return [turn["text"] for turn in chats.shown(name)["turns"]]


def test_a_conversation_goes_on_after_a_restart_and_its_answers_still_teach(school: School, do: Do) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    name = first["conversation"]
    assert (first["turn"], texts(chats, name)) == (1, ["7 + 5?", ANSWERS[0]])
    assert do(settled(chats.room)) == []
    chats = Chats(school.open())  # as after a crash
    second = do(say(chats, "And 1 more?", name))
    assert (second["conversation"], second["turn"]) == (name, 2)
    assert [turn["content"] for turn in school.engine.asked[-1][0]] == ["7 + 5?", ANSWERS[0], "And 1 more?"]
    do(say(chats, "Another?"))
    assert [found["title"] for found in chats.listed()] == ["Another?", "7 + 5?"]
    do(chats.room.teach("praise", first["answer"]["id"]))
    (lesson,) = do(settled(chats.room))
    assert (lesson["what"], lesson["learned"]) == ({"kind": "praise", "question": "7 + 5?", "text": ANSWERS[0]}, True)
    ids = [turn["id"] for turn in chats.shown(name)["turns"] if turn["role"] == "assistant"]
    assert ids == [first["answer"]["id"], second["answer"]["id"]]
    do(say(chats, "And then?", name))
    policies = [entry.policy for entry in school.lines if entry.kind == "conversation"]
    assert policies == [school.champion.name] * 3 + ["today"]  # once it has learned
    assert do(chats.room.teach("none", first["answer"]["id"]))["authors"] == {}  # nobody remembers who wrote it


@pytest.mark.parametrize("kind", ["pick", "another pick", "correct"])
def test_the_conversation_goes_on_from_the_better_answer(school: School, do: Do, kind: Any) -> None:
    chats = Chats(school.open())
    name = do(say(chats, "7 + 5?"))["conversation"]
    second = do(say(chats, "And 1 more?", name))
    if kind != "correct":
        answers = do(ask(chats.room, "And 1 more?", again=f"{name}-2"))["answers"]
        worse, better, *_ = (answer for answer in answers if answer["text"] != ANSWERS[1])
        for picked in [worse, better] if kind == "another pick" else [better]:
            do(chats.room.teach("pick", picked["id"]))
        text = better["text"]
    else:
        text = "13."
        do(chats.room.teach("correct", second["answer"]["id"], text=text))
    assert texts(chats, name) == ["7 + 5?", ANSWERS[0], "And 1 more?", text]
    assert {entry.model_extra[CONVERSATION] for entry in school.lines} == {name}
    do(chats.room.undo(do(settled(chats.room))[0]["id"]))
    assert texts(chats, name)[-1] == ANSWERS[1]


def test_corrections_are_undone_one_by_one_and_one_of_two_like_ones_leaves_the_other(school: School, do: Do) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    name = first["conversation"]
    for text in ("13.", "14."):
        do(chats.room.teach("correct", first["answer"]["id"], text=text))
    for left in ("13.", ANSWERS[0]):
        do(chats.room.undo(do(settled(chats.room))[0]["id"]))
        assert texts(chats, name) == ["7 + 5?", left]
        assert chats.room.questions.named(first["answer"]["id"])[1].better == left
    second = do(say(chats, "And 1 more?", name))
    for done in (first, second):
        do(chats.room.teach("correct", done["answer"]["id"], text="13."))
    do(chats.room.undo(do(settled(chats.room))[1]["id"]))
    assert texts(chats, name) == ["7 + 5?", ANSWERS[0], "And 1 more?", "13."]


def test_a_conversation_that_grows_too_long_goes_on_with_its_first_and_latest_turns(school: School, do: Do) -> None:
    """The first turn says whether the conversation is held out, so it stays."""
    chats = Chats(school.open())
    name = do(say(chats, "7 + 5?"))["conversation"]
    do(say(chats, "And 1 more?", name))
    do(say(chats, "And then?", name))
    school.engine.longest = 40
    last = do(say(chats, "And now?", name))
    kept = ["7 + 5?", ANSWERS[0], "And then?", ANSWERS[2], "And now?"]
    assert [turn["content"] for turn in school.engine.asked[-1][0]] == kept
    assert len(texts(chats, name)) == 8
    do(chats.room.teach("correct", last["answer"]["id"], text="13."))
    assert texts(chats, name)[-1] == "13."
    assert [message.content for message in school.lines[-2].messages] == kept
    with pytest.raises(RefusedError, match="too many tokens"):
        do(say(chats, "7" * 31, name))
    again = Chats(school.open())  # a new session, which has the whole conversation from the journal
    school.engine.longest = 40
    assert do(ask(again.room, again=f"{name}-4"))["answers"]
    assert [turn["content"] for turn in school.engine.asked[-1][0]] == kept


def test_once_lessons_tell_what_the_owner_picks_the_best_of_several_answers_is_shown(school: School, do: Do) -> None:
    chats = Chats(school.open("teach.best_of=3", texts=["5 + 7", "12"]))
    for _ in range(CHOICES):
        (picked,) = (each for each in do(ask(chats.room))["answers"] if each["text"] == "12")
        do(chats.room.teach("pick", picked["id"]))
    done = do(say(chats, "5 + 7?"))
    assert len(school.engine.asked[-1][1]) == 3
    assert (done["answer"]["text"], texts(chats, done["conversation"])) == ("12", ["5 + 7?", "12"])
    do(chats.room.teach("praise", done["answer"]["id"]))
    assert do(settled(chats.room))[0]["what"] == {"kind": "praise", "question": "5 + 7?", "text": "12"}


def test_what_was_written_before_the_reader_left_is_recorded(school: School, do: Do) -> None:
    chats = Chats(school.open(texts=["1 2 3"]))

    async def left() -> None:
        events = chats.say("Count!")
        assert (await anext(events))[0] == "answer"
        await events.aclose()  # pyrefly: ignore[missing-attribute]

    do(left())
    (chat,) = chats.listed()
    assert texts(chats, chat["id"]) == ["Count!", "1"]
    assert do(say(chats, "Go on!", chat["id"]))["turn"] == 2


def test_an_undoing_while_the_next_answer_is_written_holds(school: School, do: Do) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    do(chats.room.teach("correct", first["answer"]["id"], text="13."))

    async def undo_meanwhile() -> None:
        async for event, _ in chats.say("And then?", first["conversation"]):
            if event == "answer" and (lessons := chats.room.state()["lessons"]):
                await chats.room.undo(lessons[0]["id"])

    do(undo_meanwhile())
    assert texts(chats, first["conversation"]) == ["7 + 5?", ANSWERS[0], "And then?", ANSWERS[1]]


def test_what_is_taught_after_a_pick_is_about_the_picked_answer(school: School, do: Do) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    answers = do(ask(chats.room, "7 + 5?", again=first["question"]))["answers"]
    other = next(answer for answer in answers if answer["text"] != ANSWERS[0])
    do(chats.room.teach("pick", other["id"]))
    do(chats.room.teach("praise", first["answer"]["id"]))
    assert do(settled(chats.room))[0]["what"]["text"] == other["text"]


def test_a_picked_answer_that_was_cut_off_is_recorded_so(school: School, do: Do) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    do(ask(chats.room, "7 + 5?", again=first["question"]))
    (picked,) = [answer for answer in chats.room.questions.latest.answers.values() if answer.text == "75"]
    picked.finished = False
    do(chats.room.teach("pick", picked.name))
    assert not chats.shown(first["conversation"])["turns"][1]["finished"]


def test_other_answers_are_to_the_question_that_was_answered(school: School, do: Do) -> None:
    chats = Chats(school.open())
    name = do(say(chats, "7 + 5?"))["conversation"]
    school.engine.longest = 1
    with pytest.raises(RefusedError, match="too many tokens"):
        do(say(chats, "What?", name))
    school.engine.longest = 1000
    second = do(say(chats, "And 1 more?", name))
    do(ask(chats.room, "And 1 more?", again=second["question"]))
    assert school.engine.asked[-1][0][-1]["content"] == "And 1 more?"


def test_a_chat_that_begins_with_a_blank_answer_can_go_on(school: School, do: Do) -> None:
    chats = Chats(school.open(texts=[" ", "12"]))
    first = do(say(chats, "7 + 5?"))
    assert (first["conversation"], chats.listed()) == ("", [])
    second = do(say(chats, "7 + 5?", first["conversation"]))
    assert texts(chats, second["conversation"]) == ["7 + 5?", "12"]


@pytest.mark.parametrize(
    ("answer", "reply", "better"),
    [
        ("Sydney.", "No, actually it is Canberra.", "It is Canberra."),
        ("Sydney.", "That's wrong: Canberra", "Canberra"),
        ("Sydney.", "not quite… Canberra!", "Canberra!"),
        ("The capital of it is Sydney.", "The capital of it is Canberra.", "The capital of it is Canberra."),
        ("The capital of it is Sydney.", "The capital of it is Sydney.", None),
        ("Sydney.", "No?", None),
        ("Sydney.", "No, thank you", None),
        ("Sydney.", "no", None),
        ("Sydney.", "Nobody lives there", None),
        ("Sydney.", "Are you sure it is not Canberra?", None),
        ("Sydney.", "Tell me more about it", None),
    ],
)  # fmt: skip
def test_what_looks_like_a_correction(answer: str, reply: str, better: str | None) -> None:
    assert corrected(answer, reply) == better


@pytest.mark.parametrize(
    ("wish", "answer", "granted"),
    [
        ("Shorter, please.", "Yes.", True),
        ("Shorter, please.", "Yes, it is so today.", False),
        ("Longer, please.", "Yes, it is so today.", True),
        ("Longer, please.", "Yes.", False),
        ("Rephrase it", "Yes, it is so today.", True),
        ("Why?", "Yes.", False),
    ],
)
def test_a_wish_is_granted_by_what_it_asks_for(wish: str, answer: str, granted: bool) -> None:
    assert grants(wish, "Yes, it is so.", answer) is granted


@pytest.mark.parametrize("reply", ["Shorter, please.", "In one sentence.", "please, a bit simpler", "Rephrase it"])
def test_what_looks_like_a_wish(reply: str) -> None:
    assert is_wish(reply)
    assert not is_wish(f"Why is the day {reply}")
    assert not is_wish("In two days I travel to Rome")
    assert not is_wish(f"{reply} and then tell me all about owls and bees")


@pytest.mark.parametrize(("reply", "better"), [("No, it is 13", "It is 13"), ("Rephrase it, please.", ANSWERS[1])])
def test_a_correction_or_the_answer_to_a_wish_is_proposed_and_teaches_only_once_accepted(
    school: School, do: Do, reply: str, better: str
) -> None:
    chats = Chats(school.open())
    first = do(say(chats, "7 + 5?"))
    done = do(say(chats, reply, first["conversation"]))
    assert done["proposal"] == {"answer": first["answer"]["id"], "text": better}
    assert do(settled(chats.room)) == []
    do(chats.room.teach("correct", done["proposal"]["answer"], text=better))
    (lesson,) = do(settled(chats.room))
    assert lesson["what"] == {"kind": "correct", "question": "7 + 5?", "text": better}
    assert texts(chats, first["conversation"])[1:3] == [better, reply]


def test_what_is_not_said_teaches_only_if_asked_for(school: School, do: Do) -> None:
    chats = Chats(school.open("teach.implicit_reward=0.2"))
    name = do(say(chats, "7 + 5 = 12?"))["conversation"]
    do(say(chats, "And 1 more?", name))
    do(settled(chats.room))
    do(say(chats, "And then?", name))
    do(settled(chats.room))
    do(say(chats, "Another?"))
    kinds = [lesson["what"]["kind"] for lesson in do(settled(chats.room))]
    assert sorted(kinds) == ["left"] + ["went_on"] * 2
    implied = [entry for entry in school.lines if entry.kind == "conversation" and entry.rewards]
    assert {entry.model_extra[CONVERSATION] for entry in implied} == {name}
    baselines = 0.0, 0.002, 0.01 * 0.2 * 1.99  # the running mean before each
    rewards = [value - usual for value, usual in zip((0.2, 0.2, -0.2), baselines, strict=True)]
    assert [entry.rewards[-1] for entry in implied] == pytest.approx(rewards)
    assert implied[2].values == pytest.approx([rewards[2] * 0.9**2, rewards[2] * 0.9, rewards[2]])


def test_an_answer_that_was_cut_off_goes_on(school: School, do: Do) -> None:
    chats = Chats(school.open(texts=["1 2 3"]))
    school.engine.pause = 0.01

    async def begun() -> dict[str, Any]:
        async for event, data in chats.say("Count!"):
            if event == "done":
                return data
            school.engine.stop.set()
        raise AssertionError

    answer = do(begun())["answer"]
    assert (answer["text"], answer["finished"]) == ("1", False)
    assert school.lines[0].model_extra["unfinished"] == ["1"]

    async def rest() -> dict[str, Any]:
        *_, (_, data) = [event async for event in chats.go_on(answer["id"])]
        return data["answer"]

    assert do(rest()) == answer | {"text": "1 2 3", "html": "<p>1 2 3</p>", "finished": True}
    name = answer["id"].split("-")[0]
    assert texts(chats, name) == ["Count!", "1 2 3"]
    assert "unfinished" not in str(chats.shown(name))
    assert chats.shown(name)["turns"][1]["finished"]
    with pytest.raises(RefusedError, match="this answer is complete"):
        do(rest())


def test_a_deleted_conversation_takes_its_lessons_with_it(school: School, do: Do) -> None:
    chats = Chats(school.open())
    before = chats.room.state()["day"]
    first = do(say(chats, "7 + 5?"))
    kept = do(say(chats, "Another?"))["conversation"]
    do(chats.room.teach("blame", first["answer"]["id"]))
    assert chats.room.state()["day"] != before
    assert do(chats.forget(first["conversation"])) == {"lines": 1, "learned_by": []}  # the lesson's line was undone
    assert (chats.room.state()["day"], chats.room.state()["lessons"]) == (before, [])
    assert [entry.model_extra[CONVERSATION] for entry in school.lines] == [kept]
    with pytest.raises(RefusedError, match="no such conversation"):
        do(say(chats, "And?", first["conversation"]))
    chats.room.close("the night 2026-11-20 is running", 60)
    with pytest.raises(RefusedError, match="2026-11-20"):
        do(chats.forget(kept))
    assert [found["id"] for found in chats.listed()] == [kept]


def test_a_conversation_that_is_deleted_while_it_goes_on_stays_deleted(school: School, do: Do) -> None:
    chats = Chats(school.open())
    name = do(say(chats, "7 + 5?"))["conversation"]

    async def go_on() -> None:
        async for event, _ in chats.say("And 1 more?", name):
            if event == "answer" and chats.listed():
                await chats.forget(name)

    do(go_on())
    assert chats.listed() == []
    assert school.lines == []


def test_the_champion_and_today_are_compared_greedily(school: School, do: Do) -> None:
    chats = Chats(school.open())
    assert do(chats.compare("7 + 5?")) == {"champion": ANSWERS[0], "today": ANSWERS[0]}  # nothing was taught
    answers = do(ask(chats.room))["answers"]
    do(chats.room.teach("pick", answers[1]["id"]))
    do(settled(chats.room))
    found = do(chats.compare("7 + 5?"))
    assert school.engine.asked[-1][1] == [False, True]
    assert found["champion"] != found["today"]
    name = do(say(chats, "7 + 5?"))["conversation"]
    second = do(say(chats, "And 1 more?", name))
    asked = school.engine.asked[-1][0]
    do(chats.compare("And 1 more?", second["question"]))  # with what was said before it
    assert school.engine.asked[-1][0] == asked
