"""The day's lessons in order, and undoing any of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from conf.load import STARTER, load_night
from conf.schema import StudentConfig
from conf.storage.journal import Entry, entry_of
from models.hf.loading import answer_tokens, load_tokenizer
from tasks.teaching import day_learner
from tasks.teaching.day_learner import DayLearner, token_at, turns_of

ASKED = {"messages": [{"role": "user", "content": "7 + 5?"}]}
LINES: dict[str, dict[str, Any]] = {
    "pick": {"kind": "preference", **ASKED, "responses": ["12", "1", "5 7", "1"], "chosen": 0, "policy": "cafe"},
    "correction": {"kind": "correction", **ASKED, "response": "7 5", "correction": "7 + 5 = 12"},
    "praise": {"kind": "feedback", **ASKED, "response": "12", "value": 1},
    "blame": {"kind": "feedback", **ASKED, "response": "5 5 5", "value": -0.5},
    "wrong from": {"kind": "feedback", **ASKED, "response": "7 + 5 = 1", "value": -1, "from_char": 6},
    "conversation": {
        "kind": "conversation",
        "messages": [*ASKED["messages"], {"role": "assistant", "content": "1 2"}] * 2,
        "rewards": [None, 1],
    },
    "words": {"kind": "words", "text": "7 + 5 = 12"},
}


def line(name: str, **changes: Any) -> Entry:
    return entry_of(LINES[name] | changes)


@pytest.fixture
def make_learner(tiny_student: Path) -> Any:
    config = load_night(STARTER, ["teach.step_nats=1", "engine.max_model_len=100"])
    return lambda: DayLearner(tiny_student, config)


@pytest.mark.parametrize("name", LINES)
def test_every_kind_of_line_moves_the_copy(make_learner: Any, name: str) -> None:
    learner = make_learner()
    before = learner.digest
    taught = learner.learn("1", [line(name)])
    assert taught.learned
    assert taught.change_nats == pytest.approx(taught.intended_nats, rel=0.2) or taught.halvings
    assert learner.digest != before
    assert 0 < taught.day_kl < 0.1  # on its own everyday answers


@pytest.mark.parametrize(("snapshots", "undone"), [*((2, number) for number in range(7)), (20, 0), (20, 6)])
def test_undoing_is_never_having_taught(
    make_learner: Any, snapshots: int, undone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_learner, "SNAPSHOTS", snapshots)
    learner, other = make_learner(), make_learner()
    for number, name in enumerate(LINES):
        learner.learn(str(number), [line(name)])
        if number != undone:
            other.learn(str(number), [line(name)])
    learner.forget(str(undone))
    assert learner.digest == other.digest
    assert [*learner.lessons] == [*other.lessons]
    for each in (learner, other):  # and the day goes on from there
        each.learn("more", [line("praise", response="7")])
    assert learner.digest == other.digest
    assert learner.forget(str(undone)) == {}


@pytest.mark.parametrize("kind", ["pick", "praise"])
def test_what_was_prepared_changes_nothing_but_the_wait(make_learner: Any, kind: str) -> None:
    prepared, other = make_learner(), make_learner()
    pick: Any = line("pick")
    for learner in (prepared, other):
        learner.learn("before", [line("correction")])
    prepared.prepare(pick)
    for learner in (prepared, other):
        learner.learn(kind, [line(kind)])
    assert prepared.digest == other.digest


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (line("words", text="7"), "a single word has nothing to predict: write a sentence"),
        (line("words", text="7 " * 60), "the text has more than 100 tokens: the night reads all of it"),
        (line("praise", response="7 " * 60), "prompt and answer have more than 100 tokens together"),
        (line("praise", value=0), "feedback of 0 says nothing"),
        (entry_of({"kind": "trace", **ASKED, "response": "12", "teacher": "me"}), "a line of kind trace is learned by"),
    ],
)
def test_what_cannot_be_learned_by_day_changes_nothing(make_learner: Any, entry: Entry, reason: str) -> None:
    learner = make_learner()
    before = learner.digest
    with pytest.raises(ValueError, match=reason):
        learner.learn("1", [entry])
    assert (learner.digest, learner.lessons) == (before, {})


def test_turns_where_the_template_opens_answers_otherwise_when_it_asks(tiny_student: Path, tmp_path: Path) -> None:
    """As Qwen3's does, without thinking; what was cut off has no end token to praise."""
    folder = Path(shutil.copytree(tiny_student, tmp_path / "thinking"))
    tokenizer = load_tokenizer(folder)
    template: Any = tokenizer.chat_template
    tokenizer.chat_template = template.replace("'assistant') }}>{% endif %}", "'assistant') }}>7 7 {% endif %}")
    assert tokenizer.chat_template != template
    entry: Any = entry_of(LINES["conversation"] | {"unfinished": ["1 2"]})
    tokens, turns, values = turns_of(entry, tokenizer, StudentConfig(), 200)
    assert [tokenizer.decode(tokens[start:end]) for start, end in turns] == ["1 2", "1 2"]
    assert turns[-1][1] == len(tokens)
    assert values == [0.9, 1.0]
    whole: Any = line("conversation")
    assert turns_of(whole, tokenizer, StudentConfig(), 200)[1][-1] == (turns[-1][0], turns[-1][1] + 1)


def test_the_token_of_a_character(tiny_student: Path) -> None:
    tokenizer = load_tokenizer(tiny_student)
    answer = "7 + 5 = 12"
    tokens = answer_tokens(tokenizer, answer)
    found = [token_at(tokenizer, answer, character) for character in range(len(answer) + 1)]
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] == len(tokens) - 1  # the end token


def test_what_the_owner_would_pick_follows_the_picks_and_corrections_that_were_not_undone(make_learner: Any) -> None:
    learner, shown = make_learner(), line("pick", responses=["1 2 3", "7 7 7"])
    assert learner.preferred(shown) is None
    for name, chosen in (("first", 1), ("second", 0)):
        learner.learn(name, [line("pick", responses=["3 2 1", "7 7"], chosen=chosen)])
        if chosen:
            assert learner.preferred(shown) == 1
    learner.learn("third", [line("correction", response="7", correction="2 1")])
    assert learner.preferred(shown) == 0
    for name in ("second", "third"):
        learner.forget(name)
    assert learner.preferred(shown) == 1
