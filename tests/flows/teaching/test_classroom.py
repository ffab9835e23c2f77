"""Questions, lessons and their undoing, with a scripted engine and a real day copy."""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from flows.teaching import day
from flows.teaching.answers import CHAMPION, DAY, RefusedError
from flows.teaching.classroom import Classroom
from flows.teaching.day import Day
from models.hf.checkpoint import LEARNED, write_learned
from tasks.journal.read import lessons_in
from tasks.teaching import learner_process
from tasks.workers.worker import WorkerDiedError
from tests.flows.teaching.conftest import ANSWERS, SETTINGS, Do, School, ScriptedEngine, ask, settled

LESSONS: dict[str, dict[str, Any]] = {
    "pick": {},
    "praise": {},
    "blame": {},
    "wrong_from": {"from_char": 4},
    "correct": {"text": "It is 12."},
    "none": {},
    "words": {"text": "7 + 5 = 12 and 5 + 7 = 12"},
}
WRITTEN = {"pick": "preference", "correct": "correction", "words": "words"}


async def teach(room: Classroom, kind: Any, number: int = 0, text: str = "7 + 5?") -> dict[str, Any]:
    answers = (await ask(room, text))["answers"]
    return await room.teach(kind, None if kind == "words" else answers[number]["id"], **LESSONS[kind])


@pytest.mark.parametrize("kind", LESSONS)
def test_a_lesson_is_in_the_journal_and_learned_and_can_be_undone(school: School, do: Do, kind: str) -> None:
    room = school.open()
    before = room.state()["day"]
    taught = do(teach(room, kind))
    assert taught["learned"], taught["why"]
    assert taught["change_nats"] > 0
    assert taught["day"] == room.state()["day"] != before
    entries = school.lines
    assert {entry.kind for entry in entries} == {WRITTEN.get(kind, "feedback")}
    assert len(entries) == (len(ANSWERS) if kind == "none" else 1)
    assert taught["journal"].endswith(".jsonl:1")
    do(room.undo(taught["lesson"]))
    assert (room.state()["day"], room.state()["lessons"], school.lines) == (before, [], [])
    with pytest.raises(RefusedError, match="there is no such lesson"):
        do(room.undo(taught["lesson"]))


def test_after_a_crash_the_day_copy_is_the_same_and_undone_lessons_stay_undone(school: School, do: Do) -> None:
    room = school.open()
    taught = [do(teach(room, kind)) for kind in LESSONS]
    do(room.undo(taught[2]["lesson"]))
    state = room.state()
    again = school.open().state()
    told = [{key: lesson[key] for key in ("id", "learned", "change_nats", "what")} for lesson in state["lessons"]]
    assert [{key: lesson[key] for key in each} for lesson, each in zip(again["lessons"], told, strict=True)] == told
    assert (again["day"], again["guessed"], again["blind"]) == (state["day"], state["guessed"], state["blind"])


@pytest.mark.parametrize("how", ["kept", "ahead", "torn", "edited", "other settings", "other answers"])
def test_a_restart_learns_only_what_the_saved_day_copy_lacks(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    room = school.open()
    for kind in ("praise", "none", "words"):
        do(teach(room, kind))
    do(settled(room))
    do(room.undo(room.state()["lessons"][-1]["id"]))
    do(settled(room))
    if how == "ahead":  # a crash came before this lesson was saved
        monkeypatch.setattr(Day, "offer", lambda self: asyncio.sleep(0))
        do(teach(room, "praise", text="Another?"))
    (saved,) = (school.home.root / "teaching" / "day").iterdir()
    if how == "torn":
        (saved / "adapter_model.safetensors").write_bytes(b"torn")
    elif how == "edited":
        (file,) = school.home.journal.iterdir()
        file.write_text(file.read_text().replace("7 + 5 = 12 and", "7 + 5 = 12 or"))
    learned, learn = list[str](), learner_process.learn
    monkeypatch.setattr(learner_process, "learn", lambda name, entries: learned.append(name) or learn(name, entries))
    changed = {"other settings": ["teach.step_nats=2"], "other answers": ["teach.best_of=4"]}.get(how, [])
    served, missing = day.saved(school.home, load_night(STARTER, [*SETTINGS, *changed]), school.champion)
    assert served == (None if how == "edited" else saved)
    assert how == "edited" or missing == (how == "ahead")
    state = school.open(*changed).state()
    assert len(learned) == {"kept": 0, "other answers": 0, "ahead": 1}.get(how, 2)
    if how in ("kept", "other answers", "ahead", "torn"):
        assert state["day"] == room.state()["day"]
        assert [lesson["what"] for lesson in state["lessons"]] == [lesson["what"] for lesson in room.state()["lessons"]]


def test_equal_answers_are_shown_once_and_others_sampled_instead(school: School, do: Do) -> None:
    room = school.open(texts=["12", " 12\n", "12", "7", "1２", "75", "7", "12"])
    shown = do(ask(room))["answers"]
    assert {(answer["text"].strip(), answer["count"]) for answer in shown} == {("12", 7), ("7", 2), ("75", 1)}
    assert [len(by_day_copy) for _, by_day_copy in school.engine.asked] == [5, 3, 2]  # ten at most


def test_four_answers_are_the_day_copys_and_one_the_champions_which_nobody_is_told(school: School, do: Do) -> None:
    room = school.open()
    do(teach(room, "pick"))  # before it, both are one
    for _ in range(4):
        do(teach(room, "pick"))
    assert [sum(by_day_copy) for _, by_day_copy in school.engine.asked] == [0, 4, 4, 4, 4]
    picks = school.lines[1:]
    for pick in picks:
        authors = [author for policies in pick.model_extra["policies"] for author in policies]
        assert sorted(authors) == [CHAMPION] + [DAY] * 4
    won = sum(pick.model_extra["policies"][pick.chosen] == [DAY] for pick in picks)
    assert room.state()["blind"] == {"picks": 4, "day": won, "chance": 3.2}


def test_it_would_have_guessed_what_it_was_taught_before(school: School, do: Do) -> None:
    room = school.open()
    for _ in range(3):
        do(teach(room, "pick", number=1))
    assert room.state()["guessed"] == {"right": 2, "of": 2, "chance": 0.4}  # before the first it preferred none


@pytest.mark.parametrize(
    ("settings", "text", "live", "why"),
    [
        (
            ["learned_reward.owner_share=0.25", "reward_model.held_out_share=0.999"],
            "7 + 5?",
            True,
            "this question is held out",
        ),
        ([], "7 + 5?", False, "it is learned tonight"),
        ([], None, True, "it asks a question of the exam"),
    ],
)
def test_what_is_not_learned_by_day_is_in_the_journal_all_the_same(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch, settings: list[str], text: str | None, live: bool, why: str
) -> None:
    monkeypatch.setattr(day, "FIRST", 0)
    room = school.open(*settings)
    room.set_live(live)
    before = room.state()["day"]
    taught = do(teach(room, "praise", text=text or learner_process._questions[0]))
    assert not taught["learned"]
    assert taught["why"].startswith(why)
    assert (room.state()["day"], len(school.lines)) == (before, 1)
    room.set_live(True)
    assert school.open(*settings).state()["day"] == before


def test_a_correction_that_holds_a_question_of_the_exam_is_not_learned_by_day(school: School, do: Do) -> None:
    room = school.open()
    answer = do(ask(room))["answers"][0]["id"]
    taught = do(room.teach("correct", answer, text=f"{learner_process._questions[0]}\n#### 12"))
    assert (taught["learned"], taught["why"][:30]) == (False, "it asks a question of the exam")


def test_what_the_champion_has_learned_is_not_taught_again(
    school: School, do: Do, request: pytest.FixtureRequest
) -> None:
    taught = do(teach(school.open(), "praise"))
    (entry,) = school.lines
    assert (entry.model_extra or {})["held_out"] is False
    before = school.open().state()["lessons"]
    request.addfinalizer((school.champion / LEARNED).unlink)  # other tests share the champion
    write_learned(school.champion, lessons_in(school.home.journal, "2099-11-20"))
    assert ([lesson["id"] for lesson in before], school.open().state()["lessons"]) == ([taught["lesson"]], [])


def test_stopping_keeps_what_was_written_as_unfinished(school: School, do: Do) -> None:
    room = school.open(texts=[f"{number} and so on" for number in range(5)])
    school.engine.pause = 0.01

    stopping = []

    async def stopped() -> list[Any]:
        events = []
        async for event in room.ask("Count!"):
            events.append(event)
            stopping.append(asyncio.ensure_future(room.stop()))
        return events

    done = do(stopped())[-1][1]
    assert len(done["answers"]) <= 2
    written = next(answer for answer in done["answers"] if answer["text"])
    do(room.teach("blame", written["id"]))
    assert school.lines[0].model_extra["unfinished"] == [written["text"]]


def test_a_follow_up_goes_on_after_the_last_good_answer(school: School, do: Do) -> None:
    room = school.open()
    with pytest.raises(RefusedError, match="pick one first"):
        do(ask(room, "And?", follow_up=True))
    do(teach(room, "pick"))
    do(teach(room, "blame"))
    do(ask(room, "And 1 more?", follow_up=True))
    messages, _ = school.engine.asked[-1]
    assert [message["content"] for message in messages] == ["7 + 5?", ANSWERS[0], "And 1 more?"]


def test_a_pick_can_be_changed_but_not_repeated(school: School, do: Do) -> None:
    room = school.open()
    do(teach(room, "praise", text="Another?"))  # from now on, the day copy differs from the champion
    before, answers = room.state()["day"], do(ask(room))["answers"]
    taught = do(room.teach("pick", answers[0]["id"]))
    assert sorted(author for each in taught["authors"].values() for author in each) == [CHAMPION] + [DAY] * 4
    assert "authors" not in do(room.teach("praise", answers[1]["id"]))
    do(room.undo(room.state()["lessons"][0]["id"]))
    with pytest.raises(RefusedError, match="you have said so already"):
        do(room.teach("pick", answers[0]["id"]))
    do(room.teach("pick", answers[3]["id"]))
    assert [lesson["what"]["text"] for lesson in room.state()["lessons"][:-1]] == [answers[3]["text"]]
    do(room.teach("none", answers[0]["id"]))
    with pytest.raises(RefusedError, match="you have said so already"):
        do(room.teach("none", answers[1]["id"]))
    (lesson, _) = room.state()["lessons"]
    assert (lesson["what"]["kind"], len(school.lines)) == ("none", 1 + len(ANSWERS))
    do(room.undo(lesson["id"]))
    assert room.state()["day"] == before
    assert do(room.teach("pick", answers[0]["id"]))["learned"]


def test_a_refused_pick_leaves_the_earlier_one_and_of_two_at_once_one_counts(school: School, do: Do) -> None:
    room = school.open(texts=["12", "", "7", "75", "1"])
    answers = do(ask(room))["answers"]
    names = {answer["text"]: answer["id"] for answer in answers}
    do(room.teach("pick", names["12"]))
    with pytest.raises(RefusedError, match="nothing to choose from"):
        do(room.teach("pick", names[""]))
    assert [lesson["what"]["text"] for lesson in room.state()["lessons"]] == ["12"]

    async def both() -> None:
        await asyncio.gather(room.teach("pick", names["7"]), room.teach("pick", names["75"]))

    do(both())
    assert [lesson["what"]["text"] for lesson in room.state()["lessons"]] == ["75"]
    (pick,) = school.lines
    assert pick.responses[pick.chosen] == "75"
    assert "policies" not in pick.model_extra  # who wrote the answers was known by then


def test_a_whole_conversation_is_good_or_bad(school: School, do: Do) -> None:
    room = school.open()
    do(teach(room, "pick"))
    answer = do(ask(room, "And 1 more?", follow_up=True))["answers"][1]
    taught = do(room.teach("bad_talk", answer["id"]))
    assert taught["learned"]
    entry = school.lines[-1]
    assert (entry.kind, entry.rewards) == ("conversation", [None, -1])
    assert [message.content for message in entry.messages] == ["7 + 5?", ANSWERS[0], "And 1 more?", answer["text"]]
    assert room.state()["lessons"][0]["what"] == {"kind": "bad_talk", "question": "And 1 more?", "text": answer["text"]}
    do(room.undo(taught["lesson"]))
    do(room.teach("good_talk", answer["id"]))
    earlier = do(ask(room, "And then?", follow_up=True))["earlier"]
    assert [turn["content"] for turn in earlier] == ["7 + 5?", ANSWERS[0], "And 1 more?", answer["text"]]
    assert [message["content"] for message in school.engine.asked[-1][0]][-2:] == [answer["text"], "And then?"]


def test_a_conversation_ends_with_the_owners_correction(school: School, do: Do) -> None:
    room = school.open()
    do(teach(room, "pick"))
    answer = do(ask(room, "And 1 more?", follow_up=True))["answers"][1]["id"]
    do(room.teach("correct", answer, text="It is 13."))
    do(room.teach("good_talk", answer))
    assert school.lines[-1].messages[-1].content == "It is 13."


def test_a_corrected_answer_is_judged_as_it_is_shown(school: School, do: Do) -> None:
    room = school.open()
    answer = do(ask(room))["answers"][1]["id"]
    lesson = do(room.teach("correct", answer, text="It is 12."))["lesson"]
    do(room.teach("praise", answer))
    do(room.teach("wrong_from", answer, from_char=6))
    assert [entry.response for entry in school.lines[1:]] == ["It is 12."] * 2
    with pytest.raises(RefusedError, match="you have corrected this answer"):
        do(room.teach("pick", answer))
    do(room.undo(lesson))
    do(room.teach("pick", answer))
    assert school.lines[-1].responses[school.lines[-1].chosen] == ANSWERS[1]


def test_answers_of_an_earlier_champion_no_longer_teach(school: School, do: Do, tmp_path: Path) -> None:
    room = school.open()
    answer = do(ask(room))["answers"][0]["id"]
    for champion in (school.champion, shutil.copytree(school.champion, tmp_path / "beef")):
        room.close("the night 2026-11-20 is running", 60)
        room.open(ScriptedEngine(champion))
        if champion == school.champion:
            assert do(room.teach("praise", answer))["learned"]
    with pytest.raises(RefusedError, match="there is no such answer"):
        do(room.teach("praise", answer))


@pytest.mark.parametrize("reopened", [True, False])
def test_the_first_lessons_are_never_held_out_nor_is_what_goes_on_after_them(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    monkeypatch.setattr(day, "FIRST", 2)
    settings = "learned_reward.owner_share=0.25", "reward_model.held_out_share=0.999"
    room, taught, held_out = school.open(*settings), [], []
    for text in ("1?", "2?", "3?", "1?"):
        room = school.open(*settings) if reopened else room
        taught.append(do(teach(room, "praise", text=text))["learned"])
        held_out.append(room.questions.latest.held_out)
        do(settled(room))
    assert (taught, held_out) == ([True, True, False, True], [False, False, True, False])


def test_what_the_owner_does_not_say_is_taught_only_if_asked_for(school: School, do: Do) -> None:
    """Off by default; else what the talk goes on after is weakly good, and what is left is weakly bad."""
    silent = school.open()
    do(ask(silent))
    do(ask(silent))
    assert do(settled(silent)) == []
    room = school.open("teach.implicit_reward=0.2")
    do(ask(room))
    assert do(settled(room)) == []
    do(ask(room, "Another?"))  # the first was left
    (left,) = do(settled(room))
    assert (left["what"]["kind"], left["learned"]) == ("left", True)
    assert [entry.value for entry in school.lines] == [-0.2] * len(ANSWERS)  # the baseline begins at 0
    do(teach(room, "pick", text="A third?"))  # the second was left, too
    do(ask(room, "And?", follow_up=True))
    lessons = do(settled(room))
    assert sorted(lesson["what"]["kind"] for lesson in lessons) == ["left", "left", "pick", "went_on"]
    assert (lessons[0]["what"]["kind"], lessons[0]["what"]["text"]) == ("went_on", ANSWERS[0])
    baseline = 0.01 * -0.2 * (1 + 0.99)  # after two that were left
    assert school.lines[-1].value == pytest.approx(0.2 - baseline)
    do(room.undo(lessons[0]["id"]))
    do(ask(room, "A fifth?"))
    assert len(do(settled(room))) == 4  # the follow-up was left; the pick was not


def test_a_hundred_questions_at_once_lose_nothing(school: School, do: Do) -> None:
    room = school.open()

    async def many() -> list[Any]:
        return await asyncio.gather(*(ask(room) for _ in range(100)), return_exceptions=True)

    found = do(many())
    answered = [each for each in found if isinstance(each, dict)]
    refused = [each for each in found if isinstance(each, RefusedError)]
    assert (len(answered), len(refused)) == (1, 99)
    assert {error.status for error in refused} == {429}
    assert do(teach(room, "pick"))["learned"]


def test_many_questions_in_a_row_do_not_wait_for_the_paused_learner(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = school.open()
    learner: Any = room._day and room._day._learner

    def prepare(pick: Any) -> None:
        time.sleep(0.05)  # longer than an answer takes
        learner.goes_on.wait(60)  # a process is stopped in the middle of its work

    monkeypatch.setattr(learner_process, "prepare", prepare)

    async def many() -> None:
        for number in range(40):  # more than asyncio has threads
            await asyncio.wait_for(ask(room, f"{number}?"), 20)

    do(many())


@pytest.mark.parametrize("undone", [None, 0, 1])
def test_neither_a_lesson_nor_a_question_waits_for_the_busy_learner(school: School, do: Do, undone: int | None) -> None:
    room = school.open()
    learner: Any = room._day and room._day._learner

    async def taught() -> None:
        answers = (await ask(room))["answers"]
        learner.pause(True)
        work = [asyncio.create_task(room.teach("praise", answers[number]["id"])) for number in range(3)]
        while len(waiting := room.state()["lessons"]) < 3:
            await asyncio.sleep(0.01)
        assert len(school.lines) == 3
        assert ([lesson["learned"] for lesson in waiting], room.state()["learning"]) == ([False] * 3, True)
        if undone is not None:
            work.append(asyncio.create_task(room.undo(waiting[undone]["id"])))
            await asyncio.sleep(0.05)
        assert (await ask(room, "And 1 more?"))["behind"]  # then the learner goes on
        await asyncio.gather(*work)

    do(taught())
    lessons = do(settled(room))
    assert [lesson["learned"] for lesson in lessons] == [True] * (3 if undone is None else 2)
    assert not room.state()["learning"]
    assert room.state()["day"] == school.open().state()["day"]


@pytest.mark.parametrize("idle", [False, True])
def test_a_learner_that_dies_is_started_again(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch, idle: bool
) -> None:
    room = school.open()
    do(teach(room, "pick"))
    learner: Any = room._day and room._day._learner
    call, died = learner.call, []

    def die_once(function: Any, *arguments: Any) -> Any:
        learner.lost = False  # a call starts another process
        if function is learner_process.learn and not died and not idle:
            died.append(True)
            raise WorkerDiedError("killed")
        if function is learner_process.start and idle:
            died.append(True)
        return call(function, *arguments)

    monkeypatch.setattr(learner, "call", die_once)
    monkeypatch.setattr(learner, "lost", idle)
    assert do(teach(room, "praise"))["learned"]
    assert died
    assert room.state()["day"] == school.open().state()["day"]


def test_a_lesson_that_ends_the_learner_is_left_to_the_night(
    school: School, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the classroom could not be opened any more."""
    room = school.open()
    for kind in ("pick", "praise", "blame"):
        do(teach(room, kind))
    fatal = [*room.book.lessons][1]

    def die_at_it(name: str, *arguments: Any) -> Any:
        if name == fatal:
            raise WorkerDiedError("killed")
        return learn(name, *arguments)

    learn = learner_process.learn
    monkeypatch.setattr(learner_process, "learn", die_at_it)
    monkeypatch.setattr(day.saved_day, "find", lambda *_: (None, []))
    learned = {lesson["id"]: lesson["learned"] for lesson in school.open().state()["lessons"]}
    assert learned == {name: name != fatal for name in room.book.lessons}


@pytest.mark.parametrize(
    ("kind", "more", "status", "reason"),
    [
        ("pick", {"answer": "nobody"}, 404, "there is no such answer"),
        ("correct", {"text": ""}, 400, "correction: is blank"),
        ("correct", {"text": "12"}, 400, "correction and response are the same"),
        ("wrong_from", {"from_char": 99}, 400, "from_char: 99 is not in the answer, which has 2 characters"),
        ("words", {"text": " "}, 400, "text: is blank"),
    ],
)
def test_a_lesson_that_says_nothing_is_refused_and_nothing_is_written(
    school: School, do: Do, kind: Any, more: dict[str, Any], status: int, reason: str
) -> None:
    room = school.open(texts=["12", "7", "75", "1", "2"])
    answer = do(ask(room))["answers"][0]["id"]
    with pytest.raises(RefusedError, match=reason) as refused:
        do(room.teach(kind, **{"answer": answer} | more))
    assert refused.value.status == status
    assert school.lines == []


def test_a_journal_that_cannot_be_written_says_so_and_nothing_is_learned(school: School, do: Do) -> None:
    room = school.open()
    answer = do(ask(room))["answers"][0]["id"]
    before = room.state()["day"]
    school.home.root.mkdir(exist_ok=True)
    school.home.journal.write_text("not a folder")
    with pytest.raises(InputError, match="cannot be written"):
        do(room.teach("praise", answer))
    assert (room.state()["day"], room.state()["lessons"]) == (before, [])


def test_while_it_is_closed_it_says_why(school: School, do: Do) -> None:
    room = school.open()
    room.close("the night 2026-11-20 is running", 60)
    with pytest.raises(RefusedError, match="2026-11-20") as refused:
        do(ask(room))
    assert refused.value.status == 503
    assert (room.state()["ready"], room.state()["why"]) == (False, "the night 2026-11-20 is running")
