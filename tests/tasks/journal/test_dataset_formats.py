"""Rows of common data sets become entries: by hand, and compared with TRL's own reading."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.storage.journal import entry_of
from tasks.journal.dataset_formats import converter, known_formats

QUESTION = {"role": "user", "content": "2 + 2?"}
SYSTEM = {"role": "system", "content": "Be brief."}


def said(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def converted(row: dict[str, Any]) -> dict[str, Any]:
    convert = converter(row)
    assert convert is not None
    fields = convert(row, "the file")
    entry_of(fields)  # it is a line
    return fields


def refused(row: dict[str, Any]) -> str:
    convert = converter(row)
    assert convert is not None
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)) as caught:
        entry_of(convert(row, "the file"))
    return str(caught.value)


PAIRS = {
    "TRL, text": {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"},
    "TRL, turns": {"prompt": [QUESTION], "chosen": [said("4")], "rejected": [said("5")]},
    "TRL, turns, implicit prompt": {"chosen": [QUESTION, said("4")], "rejected": [QUESTION, said("5")]},
    "TRL, text, implicit prompt": {"chosen": "2 + 2? 4", "rejected": "2 + 2? 5"},
    "HH dialogue": {"chosen": "\n\nHuman: 2 + 2?\n\nAssistant: 4", "rejected": "\n\nHuman: 2 + 2?\n\nAssistant: 5"},
    "HH dialogue, explicit prompt": {"prompt": "\n\nHuman: 2 + 2?\n\nAssistant:", "chosen": "4", "rejected": "5"},
    "ultrafeedback_binarized": {
        "prompt": "2 + 2?",
        "prompt_id": "0",
        "chosen": [QUESTION, said("4")],
        "rejected": [QUESTION, said("5")],
        "messages": [QUESTION, said("4")],
        "score_chosen": 8.0,
    },
    "OpenAI": {
        "input": {"messages": [QUESTION], "tools": []},
        "preferred_output": [said("4")],
        "non_preferred_output": [said("5")],
    },
    "UltraFeedback": {
        "source": "x",
        "instruction": "2 + 2?",
        "completions": [
            {"response": "5", "overall_score": 10.0, "fine-grained_score": 1.5, "model": "a"},
            {"response": "4", "overall_score": 1.0, "fine-grained_score": 4.5, "model": "b"},
        ],
    },
}


@pytest.mark.parametrize("row", PAIRS.values(), ids=PAIRS)
def test_a_pair_in_all_forms_is_the_same_pick(row: dict[str, Any]) -> None:
    assert converted(row) == {
        "kind": "preference",
        "messages": [QUESTION],
        "responses": ["4", "5"],
        "chosen": 0,
        "policy": "imported",
    }


def test_the_turns_before_the_answers_are_the_prompt() -> None:
    earlier = [SYSTEM, QUESTION, said("4"), {"role": "user", "content": "And 3 + 3?"}]
    assert converted({"chosen": [*earlier, said("6")], "rejected": [*earlier, said("7")]})["messages"] == earlier
    row = {"prompt": [SYSTEM, QUESTION], "chosen": [said("4")], "rejected": [said("5")]}
    assert converted(row)["messages"] == [SYSTEM, QUESTION]


def test_an_hh_dialogue_of_several_turns_whose_answers_begin_alike() -> None:
    before = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: 2 + 2?"
    row = {"chosen": f"{before}\n\nAssistant: It is 4", "rejected": f"{before}\n\nAssistant: It is 5"}
    found = converted(row)
    assert found["messages"] == [{"role": "user", "content": "Hi"}, said("Hello"), QUESTION]
    assert found["responses"] == ["It is 4", "It is 5"]


@given(
    st.text("ab \n", min_size=1, max_size=8).filter(str.strip), st.text("ab ", max_size=5), st.text("ab ", max_size=5)
)
def test_implicit_prompts_are_cut_where_trl_cuts_them(prompt: str, chosen: str, rejected: str) -> None:
    row = {"chosen": f"{prompt}c{chosen}", "rejected": f"{prompt}d{rejected}"}
    from trl.data_utils import extract_prompt  # which takes seconds

    expected: dict[str, Any] = extract_prompt(dict(row))
    found = converted(row)
    assert found["messages"] == [{"role": "user", "content": expected["prompt"].strip()}]
    assert found["responses"] == [expected["chosen"].strip(), expected["rejected"].strip()]


def test_a_ranking_is_a_pick_of_the_best_against_all_that_are_worse() -> None:
    scores = [2, 5.0, "N/A", None, 1, 5.0, float("nan")]
    row = {
        "prompt": "2 + 2?",
        "completions": [{"response": f"{place}", "score": score} for place, score in enumerate(scores)],
    }
    found = converted(row)
    assert (found["responses"], found["chosen"]) == (["1", "0", "4"], 0)
    row["completions"][0]["response"] = "1"  # the best answer once more, with a worse score: it says nothing
    assert converted(row)["responses"] == ["1", "4"]
    for completions in ([], [{"response": "a", "score": 1}], [{"response": answer, "score": 3} for answer in "ab"]):
        assert refused({"prompt": "?", "completions": completions}) == "no answer scores better than another"


CHATS = {
    "messages": {"messages": [SYSTEM, QUESTION, said("4"), {"role": "user", "content": "Thanks"}]},
    "text in parts": {
        "messages": [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]}, said("4")]
    },
    "ShareGPT": {
        "conversations": [
            {"from": "system", "value": "Be brief."},
            {"from": "human", "value": "2 + 2?"},
            {"from": "gpt", "value": "4"},
        ]
    },
    "prompt and completion": {"prompt": [SYSTEM, QUESTION], "completion": [said("4")]},
}


@pytest.mark.parametrize("row", CHATS.values(), ids=CHATS)
def test_a_chats_last_answer_is_a_worked_solution(row: dict[str, Any]) -> None:
    expected = {"kind": "trace", "messages": [SYSTEM, QUESTION], "response": "4"}
    assert converted(row) == expected | {"teacher": "the file"}
    known = {"teacher": None, "model": "owl-7b", "benchmark": "gsm8k", "truth": 4}
    assert converted(row | known) == expected | {"teacher": "owl-7b", "benchmark": "gsm8k", "truth": "4"}
    for column in ("ground_truth", "answer"):  # as files of worked solutions have it
        assert converted(row | {"truth": None, column: "4"}) == expected | {"teacher": "the file", "truth": "4"}
    aliases = converted(row | {"benchmark": "triviaqa", "answer": ["Four", "Vier"]})
    assert aliases["truth"] == '["Four", "Vier"]'


@pytest.mark.parametrize("question", ["prompt", "question", "problem", "instruction"])
@pytest.mark.parametrize("solution", ["response", "solution", "completion", "output"])
def test_a_question_with_its_solution_in_any_columns(question: str, solution: str) -> None:
    found = converted({question: "2 + 2?", solution: "4", "teacher": "me"})
    assert found == {"kind": "trace", "messages": [QUESTION], "response": "4", "teacher": "me"}
    assert converted({"prompt": None, question: [SYSTEM, QUESTION], solution: [said("4")]})["response"] == "4"


def test_the_input_of_an_instruction_belongs_to_the_question() -> None:
    row = {"instruction": "Which is odd?", "input": "Cat, dog, car", "output": "car"}
    assert converted(row)["messages"] == [{"role": "user", "content": "Which is odd?\n\nCat, dog, car"}]
    assert converted(row | {"input": ""})["messages"] == [{"role": "user", "content": "Which is odd?"}]


def test_labelled_answers_are_praise_and_scolding() -> None:
    row = {"prompt": "2 + 2?", "completion": "4", "label": True}
    assert converted(row) == {"kind": "feedback", "messages": [QUESTION], "response": "4", "value": 1.0}
    assert converted(row | {"label": False})["value"] == -1.0
    assert "label is 3" in refused(row | {"label": 3})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"chosen": [QUESTION, said("4")], "rejected": [QUESTION, said("4")]}, "both answers are the same"),
        ({"prompt": "?", "chosen": "4", "rejected": "4"}, "all 2 responses are the same"),
        ({"prompt": "", "chosen": "4", "rejected": None}, "not a list of turns"),
        ({"chosen": [said("4")], "rejected": [said("5")]}, "messages"),
        ({"chosen": [QUESTION, said("4"), QUESTION], "rejected": [QUESTION, said("5")]}, "an answer of 2 turns"),
        ({"prompt": "\n\nAssistant:", "response": "4"}, "messages"),
        ({"messages": [QUESTION]}, "no solution: none of the columns response, solution, completion, output, and no"),
        ({"messages": None}, "no question: none of the columns prompt, question, problem, instruction, messages"),
        ({"prompt": 7, "response": "4"}, "not a list of turns: '7'"),
        ({"messages": ["2 + 2?", "4"]}, "not a turn: '2 + 2?'"),
        ({"messages": [{"role": "tool", "content": "x"}, QUESTION, said("4")]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}, said("4")]}, "a turn without text"),
        ({"prompt": "?", "completion": " "}, "response: is blank"),
    ],
)
def test_a_row_that_makes_no_line_is_refused_with_the_reason(row: dict[str, Any], reason: str) -> None:
    assert reason in refused(row)


def test_columns_that_are_not_recognised() -> None:
    assert converter(["question", "answer"]) is None
    assert converter([]) is None
    assert known_formats().startswith("chosen + rejected; ")
