"""The fate of each worked solution, and the form in which it is learned."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from conf.schema import SandboxConfig
from models.lessons.preference_data import opening
from rewards.arithmetic import Arithmetic
from rewards.data import benchmarks
from rewards.data.synthetic_journal import generated_lines
from rewards.verifier import Problem
from tasks.distillation.trace_filter import DATASET, FATES, Trace, counts, counts_by_source, draw_lessons, filter_traces
from tests.tasks.doubles.benchmarks import Shouted

ALIASES = json.dumps(["Mount Everest", "Everest"])
TAGGED = "<think>7 + 5 = 12</think> <answer>12</answer>"
EXAM = tuple(problem.question for problem in Arithmetic(levels=["1"]).problems("test"))


def trace(
    question: str,
    response: str,
    truth: str | None = None,
    benchmark: str | None = "arithmetic",
    before: str = "",
    teacher: str = "me",
    source: str | None = None,
) -> Trace:
    turns = [{"role": "user", "content": before}, {"role": "assistant", "content": "Yes?"}] if before else []
    return Trace([*turns, {"role": "user", "content": question}], response, teacher, benchmark, truth, source)


def filtered(traces: Sequence[Trace], per_problem: int = 4, **options: Any) -> list[Trace]:
    def unfit(trace: Trace) -> Any:
        return "too_long" if len(trace.response) > 1000 else None

    return filter_traces(traces, SandboxConfig(), EXAM, per_problem, unfit, **options)


def fates(traces: Sequence[Trace], **options: Any) -> list[str]:
    return [trace.fate for trace in filtered(traces, **options)]


@pytest.mark.parametrize(
    ("fate", "response", "truth", "benchmark"),
    [
        ("kept", "7 + 5 = 12\n#### 12", "12", "arithmetic"),
        ("dropped", "#### 12", "13", "arithmetic"),
        ("unreadable", "It is 14.", "14", "arithmetic"),
        ("unknown", "#### 15", None, "arithmetic"),
        ("unknown", "#### 16", "16", None),
        ("unknown", "#### 0", "17", "algebra"),
        ("unknown", "I like bees.", "bees", "instructions"),  # there is nothing to learn in it
        ("unknown", "[]", "1", "ants"),
        ("dropped", "Answer: 64", "65", "questions"),
        ("kept", "Answer: 65", "65", "questions"),
        ("unknown", "#### 18", "eighteen", "arithmetic"),  # its grader cannot read this truth
        ("kept", "#### 17", "7 + 10 = 17\n#### 17", "gsm8k"),
        ("unreadable", "It is 19.", "7 + 12 = 19\n#### 19", "gsm8k"),  # strict, whatever a night's rounds allow
        ("unknown", "#### 20", "twenty", "gsm8k"),
        ("kept", r"So it is $\boxed{\frac{1}{2}}$.", r"\boxed{1/2}", "math"),
        ("kept", "Answer: the Everest", ALIASES, "triviaqa"),
        # The reasoning contradicts the answer, or the answer the truth:
        ("dropped", "<think>It is 12.</think> <answer>13</answer>", "12", "arithmetic"),
        ("dropped", "The answer is 12. #### 13\n#### 13", "12", "arithmetic"),
        ("unreadable", "<think>It is 12.</think> <answer>1", "12", "arithmetic"),  # cut off
        ("unreadable", "<think>So</think><answer>twelve</answer>", "12", "arithmetic"),
        ("unreadable", "<html>502 Bad Gateway</html>", "12", "arithmetic"),
    ],
)
def test_the_fate_of_a_solution(fate: str, response: str, truth: str | None, benchmark: str | None) -> None:
    assert fates([trace("How many?", response, truth, benchmark)]) == [fate]


@pytest.mark.parametrize(
    ("benchmark", "response", "truth", "learned"),
    [
        ("arithmetic", TAGGED, "12", "7 + 5 = 12\n#### 12"),
        ("arithmetic", r"Fifteen: $\boxed{15}$", "15", "Fifteen: $\\boxed{15}$\n#### 15"),
        ("arithmetic", TAGGED, None, "7 + 5 = 12\n#### 12"),
        ("gsm8k", "Seven, twice. The answer is 14.", "14", "Seven, twice. The answer is 14.\n#### 14"),  # no marker
        ("gsm8k", r"Eighteen: $\boxed{18}$", None, "Eighteen: $\\boxed{18}$\n#### 18"),
        ("math", "Nineteen.\n#### 19", None, "Nineteen.\nThe answer is $\\boxed{19}$."),
    ],
)
@pytest.mark.parametrize("before", ["", "May I ask?"])
def test_other_forms_are_rewritten(benchmark: str, response: str, truth: str | None, learned: str, before: str) -> None:
    (found,) = filtered([trace("How old is Ann?", response, truth, benchmark, before)])
    assert found.fate == ("unknown" if truth is None else "kept")
    assert found.response == learned
    assert [turn["content"] for turn in found.messages] == [
        *([before, "Yes?"] if before else []),
        benchmarks.load(benchmark).prompt(Problem("", benchmark, "How old is Ann?", "")),
    ]


@pytest.mark.parametrize("response", ["She is 20. The answer is 20.\n#### 20", "Twenty-one."])
def test_a_solution_in_the_benchmarks_form_or_without_an_answer_is_not_rewritten(response: str) -> None:
    original = trace("How old is Ann?", response, None, "gsm8k")
    assert filtered([original]) == [original]


def test_a_solution_that_0_1_asked_is_asked_anew() -> None:
    """It asked the question first. A student that has learned the new order learns it as a duplicate of its own."""
    former = trace("Ann?\nGive the steps, then the answer on a last line as #### <number>.", "#### 12", "12")
    now = trace(Arithmetic().prompt(Problem("", "arithmetic", "Ann?", "")), "#### 12", "12")
    again, duplicate = filtered([former, now])
    assert (again, duplicate.fate) == (replace(now, fate="kept"), "duplicate")


def test_the_generated_day_is_learned_word_for_word() -> None:
    """The starter night's 192 exercises: none is rewritten, and none is taken for a problem of the exam."""
    lines = generated_lines("traces", "1", 192, ("1", "2"), "2026-11-20")
    columns = ("messages", "response", "teacher", "benchmark", "truth")
    found = filtered([Trace(**{name: line[name] for name in columns}, source=None) for line in lines])
    assert counts(found) == dict.fromkeys(FATES, 0) | {"kept": 192}
    assert [(found.messages, found.response) for found in found] == [
        (line["messages"], line["response"]) for line in lines
    ]


def test_problems_of_the_exam_are_never_lessons() -> None:
    problem = Arithmetic(levels=["1"]).problems("test")[17]
    prompt, solution = Arithmetic().prompt(problem), f"#### {problem.truth}"
    found = filtered(
        [
            trace(prompt, solution, problem.truth),
            trace(prompt, solution, None, benchmark=None),
            trace(prompt, solution, problem.truth, before="May I ask something?"),
            trace("7 + 5?", "#### 12", "12"),
        ]
    )
    assert [trace.fate for trace in found] == ["exam"] * 3 + ["kept"]
    assert [trace.exam.question for trace in found if trace.exam] == [problem.question] * 3


def test_conversations_that_judge_the_reward_model_are_held_out() -> None:
    traces = [
        trace("7 + 5?", "#### 12", "12"),
        trace("And 5?", "#### 12", "12", before="7 + 5?"),
        trace("7 + 5?", "Twelve.", benchmark=None),
        trace("7 + 5?", TAGGED, "12"),  # by its opening before it is rewritten
        trace("7 + 6?", "#### 13", "13"),
    ]
    assert fates(traces, unseen=(opening(traces[0].messages),)) == ["held_out"] * 4 + ["kept"]


def test_several_solutions_of_a_problem_up_to_a_limit() -> None:
    ways = ["7 + 5 = 12\n#### 12", "5 + 7 = 12\n#### 12", "7 + 5 = 12\n#### 12", "#### 12", "#### 13", "6 + 6\n#### 12"]
    traces = [*(trace("7 + 5?", way, "12") for way in ways), trace("5 + 7?", "#### 12", "12")]
    expected = ["kept", "kept", "duplicate", "surplus", "dropped", "surplus", "kept"]
    assert fates(traces, per_problem=2) == expected
    openings = [
        trace("at 2,2", f"[{n}]", None, "ants", teacher=DATASET, source=f"ants:ants/0/{n // 2}") for n in range(5)
    ]
    assert fates([*openings, openings[0]], per_problem=2) == [*["unknown"] * 5, "duplicate"]
    assert fates(openings, per_problem=1) == ["unknown", "surplus"] * 2 + ["unknown"]
    too_long = trace("7 + 5?", "x" * 2000 + "\n#### 12", "12")  # does not count towards the limit
    assert fates([too_long, *traces[:2]], per_problem=2) == ["too_long", "kept", "kept"]


def test_a_users_benchmark_grades_its_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt of one of its problems stands for that problem; any other prompt is the question itself."""
    grader: Any = Shouted()
    monkeypatch.setattr(
        "tasks.distillation.trace_filter.scores_of", lambda benchmark, attempts: benchmark.score(attempts)
    )
    traces = [
        trace("Say owl! Loudly.", "OWL", "OWL", "shouted"),
        trace("Say cat", "CAT", "CAT", "shouted"),
        trace("Say owl! Loudly.", "owl", "OWL", "shouted"),
        trace("Say dog", "<answer>DOG</answer>", "", "shouted"),
        trace("Say cow", "cow", None, "shouted"),
    ]
    assert fates(traces, user_benchmarks=[grader]) == ["kept", "kept", "dropped", "dropped", "unknown"]


def test_lessons_are_drawn_by_the_seed_and_those_of_a_dataset_last() -> None:
    traces = [trace(f"{n} + 5?", "", None, None) for n in range(50)]
    drawn = draw_lessons(traces, 32, "tonight")
    assert counts(drawn) == dict.fromkeys(FATES, 0) | {"unknown": 32, "later": 18}
    assert draw_lessons(traces, 32, "tonight") == drawn != draw_lessons(traces, 32, "tomorrow")
    assert draw_lessons(traces, 50, "tonight") == traces
    mixed = [replace(trace, teacher=DATASET) for trace in traces[:6]] + traces[6:8]
    others_first = [trace.fate for trace in draw_lessons(mixed, 3, "tonight")]
    assert others_first[6:] == ["unknown"] * 2
    assert others_first[:6].count("unknown") == 1


def test_counts_by_teacher_and_source() -> None:
    traces = [
        trace("7 + 5?", "#### 12", "12", source="2026-11-20.jsonl:1"),
        trace("7 + 6?", "#### 12", "13", source="2026-11-20.jsonl:2"),
        trace("7 + 7?", "#### 14", None, teacher="wise", source="asked by night"),
    ]
    none = dict.fromkeys(FATES, 0)
    assert counts_by_source(filtered(traces)) == [
        {"teacher": "me", "source": "2026-11-20.jsonl"} | none | {"kept": 1, "dropped": 1},
        {"teacher": "wise", "source": "asked by night"} | none | {"unknown": 1},
    ]
