"""From the freeze's tables to picks: what counts as a choice, corrections as pairs, ages, and the split by prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import DayConfig, RewardModelConfig
from models.checkpoint import write_lineage
from models.hf.loading import load_tokenizer
from models.lessons.preference_data import Pick, is_held_out
from tasks.journal.lineage import nights_with_smaller_holdout
from tasks.reward_model.preferences import AT_ONCE, MOST, Choice, DayPicks, choices, day_picks
from tasks.tables import CORRECTIONS, PREFERENCES
from tests.tasks.doubles.journals import DAYS, decided, freeze, journal, line
from tests.tasks.doubles.student import END, write_student
from tests.tasks.doubles.tables import write_stage

DATE = "2026-11-20"


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def preference(text: str, responses: list[str], chosen: int) -> dict[str, Any]:
    messages, shown = json.dumps(asked(text)), json.dumps(responses)
    return {"messages": messages, "responses": shown, "chosen": chosen, "policy": "cafe42"}


def split(student: Path, found: list[Choice], **config: Any) -> DayPicks:
    return day_picks(found, DATE, load_tokenizer(student), StudentConfig(), RewardModelConfig(**config))


def all_of(picks: DayPicks) -> list[Pick]:
    return [*picks.fitted, *picks.held_out]


def test_a_pick_and_a_correction_in_full(tmp_path: Path, student: Path) -> None:
    correction = {"messages": json.dumps(asked("And?")), "response": "No.", "correction": "Yes."}
    day = write_stage(
        tmp_path / "freeze_journal",
        {
            "preferences": (PREFERENCES, [preference("Why?", ["a", "bc", "a"], 2)]),
            "corrections": (CORRECTIONS, [correction]),
        },
    )
    pick, pair = choices(day.folder)
    assert pick == Choice(asked("Why?"), ["a", "bc"], 0, None)  # the one picked was shown twice
    assert pair == Choice(asked("And?"), ["No.", "Yes."], 1, None, corrected=True)
    tokenizer: Any = load_tokenizer(student)
    found = {len(one.answers[0]): one for one in all_of(split(student, [pick, pair]))}
    assert tokenizer.decode(found[2].prompt) == "User: Why?\nAssistant:"
    assert found[2].answers == ((*tokenizer.encode("a"), END), (*tokenizer.encode("bc"), END))
    assert [tokenizer.decode(answer[:-1]) for answer in found[4].answers] == ["No.", "Yes."]
    assert (found[4].chosen, found[4].weight) == (1, 1.0)


@pytest.mark.parametrize("responses", [["same"], ["", ""]])
def test_two_different_answers_make_a_choice(tmp_path: Path, student: Path, responses: list[str]) -> None:
    rows = [preference("Why?", [*responses, responses[0]], 0)]
    day = write_stage(tmp_path / "day", {"preferences": (PREFERENCES, rows), "corrections": (CORRECTIONS, [])})
    found = split(student, list(choices(day.folder)))
    assert (len(found), found.left_out["no_choice"]) == (0, 1)


def test_a_pick_that_does_not_fit_is_left_out(student: Path) -> None:
    choice = Choice(asked("Why?"), ["x", "y" * 50], 0, None)
    whole = len("User: Why?\nAssistant:") + 51
    assert len(split(student, [choice], max_tokens=whole)) == 1
    assert +split(student, [choice], max_tokens=whole - 1).left_out == {"too_long": 1}


def test_a_pick_of_more_answers_than_memory_holds_is_left_out(student: Path) -> None:
    """A line of a megabyte may have hundreds of long answers, and all go through the model together."""
    length = len("User: Why?\nAssistant:") + 51
    for count, fits in ((AT_ONCE, True), (AT_ONCE * length // 51 + 1, False)):
        choice = Choice(asked("Why?"), [f"{n:050d}" for n in range(count)], 0, None)
        found = split(student, [choice], max_tokens=length)
        assert (len(found), found.left_out["too_long"]) == (fits, not fits)


def test_a_conversation_that_the_template_refuses_is_left_out(tmp_path: Path) -> None:
    strict = write_student(tmp_path / "strict")
    load_tokenizer(strict).chat_template = "{{ raise_exception('speakers must take turns') }}"  # it is cached
    found = split(strict, [Choice(asked("Why?"), ["a", "b"], 0, None)])
    assert (len(found), found.left_out["refused"]) == (0, 1)


@pytest.mark.parametrize(
    ("night", "weight"),
    [(None, 1.0), ("2026-11-20", 1.0), ("2026-11-06", 0.5), ("2026-10-23", 0.25), ("2026-12-01", 1)],
)
def test_older_picks_weigh_less(student: Path, night: str | None, weight: float) -> None:
    (pick,) = all_of(split(student, [Choice(asked("Why?"), ["a", "b"], 0, night)], half_life_nights=14.0))
    assert pick.weight == pytest.approx(weight)


def test_all_picks_of_a_prompt_are_on_one_side(student: Path) -> None:
    found = split(
        student,
        [Choice(asked(f"Why {n % 40}?"), ["a", "b" * (n + 1)], n % 2, None) for n in range(200)],
        held_out_share=0.5,
    )
    fitted, held_out = {pick.prompt for pick in found.fitted}, {pick.prompt for pick in found.held_out}
    assert not fitted & held_out
    assert len(fitted | held_out) == 40
    assert min(len(fitted), len(held_out)) > 8
    assert len(found.held_out_choices) == len(found.held_out)


def test_a_correction_is_fitted_and_judges_nothing(student: Path) -> None:
    """Style tells who wrote an answer; a model that learns no more must not serve."""
    rows = [(asked(f"Why {n}?"), ["a", "b"]) for n in range(40)]
    picks = split(student, [Choice(*row, 1, None) for row in rows], held_out_share=0.5)
    found = split(student, [Choice(*row, 1, None, corrected=True) for row in rows], held_out_share=0.5)
    assert (found.fitted, found.held_out, found.held_out_choices) == (picks.fitted, [], [])
    assert found.left_out["correction"] == len(picks.held_out) > 8


def test_only_the_newest_picks_are_fitted(student: Path) -> None:
    """As many as a night has time for; all held-out ones judge."""
    nights = ("2026-10-01", None, "2026-11-19", "2026-11-01")
    found = split(student, [Choice(asked(f"Why {n}?"), ["a", "b"], 0, nights[n % 4]) for n in range(400)])
    whole = [n for n in range(400) if not is_held_out(asked(f"Why {n}?"), 0.25)]
    kept = [n for n in whole if n % 4 in (1, 2)]  # of tonight and of last night, and the last of those before
    kept += [n for n in whole if n % 4 == 3][-(MOST - len(kept)) :]
    tokenizer: Any = load_tokenizer(student)
    assert [tokenizer.decode(pick.prompt) for pick in found.fitted] == [
        f"User: Why {n}?\nAssistant:" for n in sorted(kept)
    ]
    assert (len(found.fitted), found.left_out["older"]) == (MOST, len(whole) - MOST)
    assert len(found.held_out) == 400 - len(whole)


def test_conversations_that_the_champion_learnt_do_not_judge(student: Path) -> None:
    """On the 18th a quarter of the conversations was held out, on the 10th none."""
    choices = [
        Choice(asked(f"Why {number}?"), ["a", "b"], 0, night)
        for number in range(100)
        for night in ("2026-11-10", "2026-11-18", "2026-11-19")[number % 3 :: 3]
    ]
    again = Choice(choices[0].messages, ["c", "d"], 1, "2026-11-19")  # of a conversation that was taught

    def judges(*nights: tuple[str, float]) -> list[Choice]:
        found = day_picks(
            [*choices, again],
            DATE,
            load_tokenizer(student),
            StudentConfig(),
            RewardModelConfig(held_out_share=0.75),
            nights_with_smaller_holdout=nights,
        )
        assert len(found) + found.left_out["known"] == len(choices) + 1
        return found.held_out_choices

    whole = judges()
    assert again in whole
    nights = [("2026-11-18", 0.25), ("2026-11-10", 0.0)]
    expected = [
        choice
        for choice in whole
        if choice.night == "2026-11-19" or (choice.night == "2026-11-18" and is_held_out(choice.messages, 0.25))
    ]
    assert judges(*nights) == [choice for choice in expected if choice != again]
    assert {choice.night for choice in expected} == {"2026-11-18", "2026-11-19"}


def test_a_generated_day_that_the_champion_learnt_judges_on_no_later_night(tmp_path: Path, student: Path) -> None:
    """The seed draws the same picks every night, dated with that night."""
    generated = DayConfig(generated_preferences=40)
    freeze(tmp_path, DAYS[0], generated)
    decided(tmp_path, DAYS[0], "original", "winner", "", "preference_learning=direct", done=("lessons/picks",))
    champion = tmp_path / "checkpoints" / "winner"
    champion.mkdir(parents=True)
    write_lineage(champion, "original")
    said = {"responses": ["a", "b"], "chosen": 0, "policy": "cafe42"}
    journal(tmp_path, *(line("preference", messages=asked(f"Why {number}?"), **said) for number in range(40)))
    second = freeze(tmp_path, DAYS[1], generated, champion="winner")

    def judges(*nights: tuple[str, float]) -> list[Choice]:
        found, config = list(choices(second.folder)), RewardModelConfig()
        tokenizer = load_tokenizer(student)
        return day_picks(found, DAYS[1], tokenizer, StudentConfig(), config, (), nights).held_out_choices

    whole = judges()
    assert {(choice.generated, choice.night) for choice in whole} == {(True, DAYS[1]), (False, DAYS[1])}
    line_before = nights_with_smaller_holdout("winner", tmp_path / "nights", 0.25)
    assert line_before == ((DAYS[0], 0.0),)
    assert judges(*line_before) == [choice for choice in whole if not choice.generated]
    kept = [choice for choice in whole if not choice.generated or is_held_out(choice.messages, 0.1)]
    assert judges((DAYS[0], 0.1)) == kept  # what that night held out as well
