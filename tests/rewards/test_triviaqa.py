"""TriviaQA: which texts are one of an answer's names; its data from a folder and from the hub."""

import json
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conf.storage.home import InputError
from rewards.triviaqa import TriviaQa, normalised, true_names
from rewards.verifier import Attempt, Problem, Score
from tests.rewards.local_hub import write_dataset

# Questions of the training split, with some of the names that their answers go by.
LEWIS = (
    "Which American-born Sinclair won the Nobel Prize for Literature in 1930?",
    ["Sinclair Lewis", "(Harry) Sinclair Lewis", "Harry Sinclair Lewis", "Lewis, (Harry) Sinclair", "Grace Hegger"],
)
YORK = (
    "Where in England was Dame Judi Dench born?",
    ["York", "York, England", "York UA", "UN/LOCODE:GBYRK", "Eoforwic", "Park Grove (1895)", "City of York"],
)
BEARS = ("Who won Super Bowl XX?", ["Chicago Bears", "Chicago Staleys", "Decatur Staleys", "The Chicago Bears"])
DZ = (
    "What are the international registration letters of a vehicle from Algeria?",
    ["DZ", "D.Z.", "DZ (disambiguation)"],
)
WIPERS = (
    "Which innovation for the car was developed by Prince Henry of Prussia in 1911?",
    ["Windshield wipers", "Windscreen wiper", "Windshield-wiper", "Wiper motor", "Intermittent_windshield_wiper"],
)
NINETEEN = (
    "When did the founder of Jehovah's Witnesses say the world would end?",
    ["1914", "one thousand, nine hundred and fourteen"],
)
BINCHY = ("Who wrote the novel Evening Class?", ["Maeve Binchy", "Maeve Binchey", "Maeve Binchy Snell"])
THIRTIES = ("In which decade did Billboard magazine first publish and American hit chart?", ["30s", "30’s", "30's"])

CORRECT = [
    (LEWIS, "Sinclair Lewis"),
    (LEWIS, "Answer: Sinclair Lewis"),
    (LEWIS, "answer: sinclair lewis"),
    (LEWIS, "He won in 1930.\nAnswer: Sinclair Lewis."),
    (LEWIS, "**Answer:** Sinclair Lewis"),
    (LEWIS, "**Answer**: Sinclair Lewis"),
    (LEWIS, "The final answer: **Sinclair Lewis**\n"),
    (LEWIS, "Answer: Upton Sinclair\nNo. Answer: Sinclair Lewis"),
    (LEWIS, "Answer:   SINCLAIR\tLEWIS !"),
    (LEWIS, "Answer: Lewis, Harry Sinclair"),
    (LEWIS, "(Harry) Sinclair Lewis"),
    (LEWIS, "Answer: <answer>\nAnswer: Sinclair Lewis"),
    (LEWIS, "Answer: Sinclair Lewis\nAnswer: <answer>"),
    (YORK, "York"),
    (YORK, 'Answer: "York"'),
    (YORK, "York, England"),
    (YORK, "York England"),
    (YORK, "the City of York"),
    (YORK, "Answer: UN/LOCODE: GBYRK"),
    (YORK, "‘York’"),
    (YORK, "`York´"),
    (BEARS, "the Chicago Bears"),
    (BEARS, "Chicago Bears"),
    (BEARS, "A Chicago, Bears"),
    (DZ, "DZ"),
    (DZ, "dz."),
    (DZ, "D.Z."),
    (DZ, "D Z"),
    (WIPERS, "windshield wiper"),
    (WIPERS, "windshield-wiper"),
    (WIPERS, "Windshield_wipers"),
    (WIPERS, "the windscreen wiper"),
    (WIPERS, "Intermittent windshield wiper"),
    (NINETEEN, "1914"),
    (NINETEEN, "Answer: 1914."),
    (NINETEEN, "one thousand nine hundred and fourteen"),
    (BINCHY, "maeve  binchy"),
    (THIRTIES, "30's"),
    (THIRTIES, "the 30s"),
    (THIRTIES, "30´s"),
]
WRONG = [
    (LEWIS, "Upton Sinclair"),
    (LEWIS, "Lewis"),
    (LEWIS, "Sinclair"),
    (LEWIS, "Sinclair Lewis or Upton Sinclair"),
    (LEWIS, "Sinclair Lewis, Upton Sinclair"),
    (LEWIS, "Answer: Sinclair Lewis\nUpton Sinclair"),
    (LEWIS, "Answer: Sinclair Lewis / Upton Sinclair"),
    (LEWIS, "Answer: Sinclair Lewis and others"),
    (LEWIS, "Answer: Sinclair Lewis\nAnswer: Upton Sinclair"),
    (LEWIS, "It is Sinclair Lewis"),
    (LEWIS, "I think the answer is Sinclair Lewis"),
    (LEWIS, "not Sinclair Lewis"),
    (LEWIS, "Answer: SinclairLewis"),
    (LEWIS, "Sinclair Lewis Sinclair Lewis"),
    (LEWIS, json.dumps(LEWIS[1])),
    (LEWIS, ", ".join(LEWIS[1])),
    (YORK, "New York"),
    (YORK, "Yorkshire"),
    (YORK, "York or London"),
    (YORK, "York, London"),
    (YORK, "York, England or London"),
    (YORK, "York\nLondon"),
    (YORK, "York (or London)"),
    (YORK, "York?London?"),
    (YORK, "Answer: York, Leeds, Hull, Durham, Ripon"),
    (YORK, "Ýork"),
    (BEARS, "Bears"),
    (BEARS, "Chicago"),
    (BEARS, "Chicago Bears 46"),
    (DZ, "ADZ"),
    (DZ, "A DZ or B"),
    (WIPERS, "wipers"),
    (NINETEEN, "1 914"),
    (NINETEEN, "1915"),
    (NINETEEN, "1914, 1915"),
    (NINETEEN, "19140"),
    (BINCHY, "Binchy"),
    (BINCHY, "x" * 100_000),
    (BINCHY, "Maeve Binchy\x00"),
    (BINCHY, "Maeve Binchy\ud800"),
    (THIRTIES, "1930s"),
    (THIRTIES, "..."),
]
NO_ANSWER = [
    (LEWIS, ""),
    (LEWIS, " \n"),
    (LEWIS, "Sinclair Lewis. Answer:"),
    (YORK, "Answer: \n"),
    (YORK, "Answer: <answer>"),
]
ROWS = [
    (question, names, completion, verdict)
    for verdict, rows in (("correct", CORRECT), ("wrong", WRONG), ("no_answer", NO_ANSWER))
    for (question, names), completion in rows
]


def scored(completion: str, names: list[str], question: str = "Who?") -> Score:
    problem = Problem("triviaqa/test/x", "triviaqa", question, json.dumps(names))
    [score] = TriviaQa().score([Attempt(problem, completion)])
    return score


@pytest.mark.parametrize(("question", "names", "completion", "verdict"), ROWS)
def test_what_a_completion_is_worth(question: str, names: list[str], completion: str, verdict: str) -> None:
    score = scored(completion, names, question)
    assert score.verdict == verdict
    assert score.reward == float(verdict == "correct")
    assert score.parts == {"correct": score.reward}
    assert score.detail.isprintable()


def test_a_hedge_counts_where_that_very_text_is_a_name() -> None:
    assert scored("Paris, Texas", ["Paris, Texas"]).verdict == "correct"
    assert scored("Trick or Treat", ["Trick or treat"]).verdict == "correct"


def test_names_of_articles_or_signs_alone() -> None:
    assert scored("The The", ["The The"]).verdict == "correct"
    assert scored("the", ["The The"]).verdict == "wrong"
    assert scored("!!!", ["!!!"]).verdict == "correct"
    assert scored("???", ["!!!"]).verdict == "wrong"
    assert scored("A", ["A", "The letter A"]).verdict == "correct"


def test_to_repeat_a_marker_of_the_question_is_no_answer() -> None:
    question = "Quiz. Answer: York. Where was she born?"
    assert scored(question, YORK[1], question).verdict == "no_answer"
    assert scored(f"{question}\nAnswer: York", YORK[1], question).verdict == "correct"


@pytest.mark.parametrize(
    "truth", ["", "York", "[]", "{}", '["York"', "[1]", '[""]', '[" "]', '"York"', "null", "[" * 10_000]
)
def test_an_unreadable_truth_is_the_graders_failure_never_a_zero(truth: str) -> None:
    assert not true_names(truth)
    [score] = TriviaQa().score([Attempt(Problem("", "triviaqa", "?", truth), "Answer: York")])
    assert (score.reward, score.verdict) == (None, "grader_failed")


def official(answer: str) -> str:
    """`normalize_answer` as in the authors' evaluation script, function by function."""

    def remove_articles(text: str) -> str:
        return re.sub(r"\b(a|an|the)\b", " ", text)

    def white_space_fix(text: str) -> str:
        return " ".join(text.split())

    def handle_punctuation(text: str) -> str:
        exclude = set(string.punctuation + "".join(["‘", "’", "´", "`"]))
        return "".join(ch if ch not in exclude else " " for ch in text)

    def replace_underscore(text: str) -> str:
        return text.replace("_", " ")

    return white_space_fix(remove_articles(handle_punctuation(replace_underscore(answer).lower()))).strip()


@given(st.text() | st.text(alphabet="aA ntheTHE._-’´`'\t\nİß", max_size=40))
def test_the_normal_form_is_the_official_one(answer: str) -> None:
    assert normalised(answer) == official(answer) or official(answer) == ""


@given(st.text(), st.text())
def test_texts_are_equal_where_the_official_forms_are(name: str, answer: str) -> None:
    if official(name):
        expected = "correct" if official(name) == official(answer) else "wrong"
        assert scored(f"Answer: {answer}", [name]).verdict in (expected, "no_answer")
        assert scored(f"Answer: {name}", [name]).verdict == "correct" or "answer" in name.lower()


def row(question_id: str = "tc_2", **answer: Any) -> dict[str, Any]:
    return {"question": LEWIS[0], "question_id": question_id, "question_source": "x", "answer": answer}


def write_rows(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))


def test_a_row_with_its_names_in_their_order(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", row(aliases=["B", "A", "B", "  "], value="A", normalized_value="a"))
    benchmark = TriviaQa(source=str(tmp_path))
    [problem] = benchmark.problems("test")
    assert problem == Problem("triviaqa/test/tc_2", "triviaqa", LEWIS[0], '["A", "B"]')
    assert benchmark.prompt(problem).endswith("on a last line `Answer: <answer>`.")
    assert benchmark.kind(problem) == "triviaqa/test/tc_2"
    assert benchmark.score([Attempt(problem, "b")])[0].verdict == "correct"


def test_a_problem_without_an_answer_is_left_out_counted_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_rows(
        tmp_path / "train.jsonl", row("a", aliases=[]), row("b", aliases=["x"]), row("c", aliases=[""], value=None)
    )
    benchmark = TriviaQa(source=str(tmp_path))
    assert [problem.problem_id for problem in benchmark.problems("train")] == ["triviaqa/train/b"]
    assert benchmark.excluded == {"train": ["triviaqa/train/a", "triviaqa/train/c"]}
    assert "triviaqa/train/a is excluded" in caplog.text
    assert "2 of 3 train problems are excluded" in caplog.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"question": "?", "question_id": "x"}, 'train.jsonl, line 2: the field "answer" is missing'),
        (
            {"question": "?", "question_id": "x", "answer": []},
            'train.jsonl, line 2: the field "answer" is not an object',
        ),
        (
            {"question": "?", "question_id": "x", "answer": {}},
            'triviaqa/train/x, answer: the field "aliases" is missing',
        ),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: dict[str, Any], said: str) -> None:
    write_rows(tmp_path / "train.jsonl", row(aliases=["x"]), line)
    with pytest.raises(InputError) as caught:
        TriviaQa(source=str(tmp_path)).problems("train")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_hubs_validation_split_is_the_exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTSCHOOL_DATA", raising=False)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    splits = {"train": [row("a", aliases=["x"], value="x")], "validation": [row("b", aliases=["y"], value="y")]}
    hub = write_dataset(tmp_path / "set", {"rc.nocontext": splits})
    monkeypatch.setattr("rewards.triviaqa.HUB", (hub, "rc.nocontext"))
    assert [problem.problem_id for problem in TriviaQa().problems("train")] == ["triviaqa/train/a"]
    assert [problem.problem_id for problem in TriviaQa().problems("test")] == ["triviaqa/test/b"]
