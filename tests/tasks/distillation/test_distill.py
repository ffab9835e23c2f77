"""Which worked solutions become lessons: right ones, those nobody can judge, and never a problem of the exam."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from models.hf.loading import load_tokenizer
from models.lessons.preference_data import opening
from rewards import benchmarks
from rewards.arithmetic import Arithmetic
from rewards.data import synthetic_journal
from rewards.verifier import Attempt, Problem, Score, Split
from tasks.distillation.distill import distill
from tasks.distillation.trace_filter import FATES
from tasks.journal.lineage import solution_of
from tasks.stage import Artifact
from tasks.tables import TRACES
from tasks.training import trainer_process
from tests.tasks.doubles.student import END, write_student
from tests.tasks.doubles.tables import write_stage


class FakeTrainer:
    """Keeps what it is asked to learn."""

    def __init__(self) -> None:
        self.examples: list[tuple[list[int], list[int]]] = []
        self.calls = 0

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[Path, list[dict[str, float]]]:
        assert function is trainer_process.lesson
        self.calls += 1
        checkpoint, _, _, self.examples, checkpoints = arguments
        assert checkpoint.name == "base"
        return checkpoints / "taught", [{"step": 1.0, "loss": 2.0}]


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_student(tmp_path_factory.mktemp("students") / "base")


class Shouted:
    """A benchmark of the user's own: a question's last word in capitals; it judges by the question, not the prompt."""

    name = "shouted"

    def __init__(self, source: str | None = None) -> None: ...

    def problems(self, split: Split) -> list[Problem]:
        return [Problem("shouted/owl", self.name, "Say owl", "OWL")] if split == "train" else []

    def kind(self, problem: Problem) -> str:
        return self.name

    def prompt(self, problem: Problem) -> str:
        return f"{problem.question}! Loudly."

    def score(self, attempts: Sequence[Attempt]) -> list[Score]:
        right = [a.completion == a.problem.question.removeprefix("Say ").upper() for a in attempts]
        return [Score(float(each), "correct" if each else "wrong") for each in right]


def trace(
    content: str, response: str, truth: str | None = None, benchmark: str | None = "arithmetic", before: str = ""
) -> dict[str, Any]:
    turns = [{"role": "user", "content": before}, {"role": "assistant", "content": "Yes?"}] if before else []
    messages = json.dumps([*turns, {"role": "user", "content": content}])
    return {"messages": messages, "response": response, "teacher": "me", "benchmark": benchmark, "truth": truth}


def run(
    tmp_path: Path,
    student: Path,
    traces: list[dict[str, Any]],
    *,
    longest: int = 1000,
    steps: int = 3,
    per_problem: int = 4,
    unseen: tuple[str, ...] = (),
    drawn_by: str = "tonight",
) -> tuple[FakeTrainer, dict[str, int], Path]:
    day = write_stage(tmp_path / "freeze_journal", {"traces": (TRACES, traces)})
    folder, trainer = tmp_path / "distill", FakeTrainer()
    folder.mkdir()
    exam = Arithmetic(levels=["1"]).problems("test")
    arguments: dict[str, Any] = {
        "traces": (day,),
        "checkpoint": student,
        "config": DistillConfig(steps=steps, traces_per_problem=per_problem),
        "trainer_config": TrainerConfig(),
        "student": StudentConfig(),
        "sandbox": SandboxConfig(workers=1),
        "benchmarks": (BenchmarkConfig(name="tests.tasks.distillation.test_distill:Shouted"),),
        "exam_questions": tuple(problem.question for problem in exam),
        "unseen": unseen,
        "drawn_by": drawn_by,
        "max_tokens": longest,
        "checkpoints": tmp_path / "checkpoints",
        "trainer": trainer,
    }
    distill.write(folder, **arguments)
    written = Artifact(folder=folder, digest="")
    return trainer, written.read_json("counts.json"), tmp_path / "checkpoints" / (folder / "checkpoint.txt").read_text()


def fates(**found: int) -> dict[str, int]:
    return dict.fromkeys(FATES, 0) | found


def decoded(tokens: list[int], student: Path) -> str:
    return str(load_tokenizer(student).decode(tokens))


def test_a_right_solution_is_learned_token_by_token(tmp_path: Path, student: Path) -> None:
    trainer, counts, checkpoint = run(tmp_path, student, [trace("7 + 5?", "7 + 5 = 12\n#### 12", "12")])
    assert counts == fates(kept=1)
    assert checkpoint.name == "taught"
    ((prompt, answer),) = trainer.examples
    assert decoded(prompt, student) == "User: 7 + 5?\nAssistant:"
    assert answer[-1] == END
    assert decoded(answer[:-1], student) == "7 + 5 = 12\n#### 12"
    assert json.loads((tmp_path / "distill" / "curve.json").read_text()) == [{"step": 1.0, "loss": 2.0}]


def test_what_judges_the_reward_model_is_no_lesson_whoever_solved_it(tmp_path: Path, student: Path) -> None:
    traces = [
        trace("7 + 5?", "#### 12", "12"),
        trace("And 5?", "#### 12", "12", before="7 + 5?"),  # goes on with the same conversation
        trace("7 + 5?", "Twelve.", benchmark=None),
        trace("7 + 6?", "#### 13", "13"),
    ]
    unseen = (opening([{"role": "user", "content": "7 + 5?"}]),)
    trainer, counts, _ = run(tmp_path, student, traces, unseen=unseen)
    assert counts == fates(kept=1, held_out=3)
    assert [decoded(prompt, student) for prompt, _ in trainer.examples] == ["User: 7 + 6?\nAssistant:"]


def test_a_conversation_that_the_template_refuses_costs_no_night(tmp_path: Path) -> None:
    strict = write_student(tmp_path / "strict")
    load_tokenizer(strict, False).chat_template = "{{ raise_exception('speakers must take turns') }}"  # it is cached
    trainer, counts, checkpoint = run(tmp_path, strict, [trace("7 + 5?", "#### 12", "12")])
    assert (counts, trainer.calls, checkpoint.name) == (fates(refused=1), 0, "strict")


def test_wrong_solutions_are_dropped_and_what_nobody_can_judge_is_counted_apart(tmp_path: Path, student: Path) -> None:
    traces = [
        trace("7 + 5?", "#### 12", "12"),
        trace("7 + 6?", "#### 12", "13"),  # wrong
        trace("7 + 7?", "It is 14.", "14"),  # right, but not in the format
        trace("7 + 8?", "#### 15", None),  # no truth
        trace("7 + 9?", "#### 16", "16", benchmark=None),
        trace("7 + 10?", "#### 0", "17", benchmark="algebra"),  # which nobody here knows
        trace("7 + 11?", "#### 18", "eighteen"),  # whose grader cannot read it
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert counts == fates(kept=1, dropped=1, unreadable=1, unknown=4)
    asked = [decoded(prompt, student) for prompt, _ in trainer.examples]
    assert asked == [f"User: 7 + {n}?\nAssistant:" for n in (5, 8, 9, 10, 11)]


def test_every_benchmark_that_is_known_is_asked_whatever_the_night_trains_on(tmp_path: Path, student: Path) -> None:
    boxed = r"So it is $\boxed{\frac{1}{2}}$."
    aliases = json.dumps(["Mount Everest", "Everest"])
    traces = [
        trace("7 + 10?", "#### 17", "7 + 10 = 17\n#### 17", benchmark="gsm8k"),
        trace("7 + 11?", "#### 17", "7 + 11 = 18\n#### 18", benchmark="gsm8k"),  # wrong
        trace("7 + 12?", "It is 19.", "7 + 12 = 19\n#### 19", benchmark="gsm8k"),  # strictly, whatever a night allows
        trace("7 + 13?", "#### 20", "twenty", benchmark="gsm8k"),  # its grader cannot tell
        trace("Half of one?", boxed, r"\boxed{1/2}", benchmark="math"),
        trace("Half of two?", boxed, r"\boxed{1}", benchmark="math"),  # wrong
        trace("Which is the highest?", "Answer: the Everest", aliases, benchmark="triviaqa"),
        trace("Which is the lowest?", "Answer: a hole", aliases, benchmark="triviaqa"),  # wrong
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert counts == fates(kept=3, dropped=3, unreadable=1, unknown=1)
    asked = [decoded(prompt, student) for prompt, _ in trainer.examples]
    assert asked == [
        f"User: {question}\nAssistant:" for question in ("7 + 10?", "7 + 13?", "Half of one?", "Which is the highest?")
    ]


def test_a_program_is_run_where_it_can_be(tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = json.dumps({"setup": "", "tests": ["assert twice(2) == 4"], "entry_point": "twice"})
    right = "```python\ndef twice(x):\n    return 2 * x\n```"
    traces = [
        trace("Double it.", right, truth, benchmark="mbpp"),
        trace("Double this.", right.replace("2 * x", "3 * x"), truth, benchmark="mbpp"),
    ]
    if shutil.which("bwrap"):
        counts = run(tmp_path / "with", student, traces)[1]
        assert (counts["kept"], counts["dropped"], counts["unknown"]) == (1, 1, 0)
    monkeypatch.setenv("PATH", str(tmp_path))  # no bubblewrap: no program is run, and nobody says that it is right
    counts = run(tmp_path / "without", student, traces)[1]
    assert (counts["kept"], counts["dropped"], counts["unknown"]) == (0, 0, 2)


def test_problems_of_the_exam_are_never_lessons(tmp_path: Path, student: Path) -> None:
    problem = Arithmetic(levels=["1"]).problems("test")[17]
    asked, solution = Arithmetic().prompt(problem), f"#### {problem.truth}"
    traces = [
        trace(asked, solution, problem.truth),
        trace(asked, solution, None, benchmark=None),
        trace(asked, solution, problem.truth, before="May I ask something?"),
        trace("7 + 5?", "#### 12", "12"),
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert (counts["exam"], counts["kept"], len(trainer.examples)) == (3, 1, 1)


def test_a_solution_that_does_not_fit_is_left_out(tmp_path: Path, student: Path) -> None:
    whole = len(b"User: 7 + 5?\nAssistant:" + b"#### 12") + 1
    right = [trace("7 + 5?", "#### 12", "12")]
    assert run(tmp_path / "fits", student, right, longest=whole)[1]["kept"] == 1
    assert run(tmp_path / "short", student, right, longest=whole - 1)[1]["too_long"] == 1


@pytest.mark.parametrize(("traces", "steps"), [([], 3), ([trace("7 + 5?", "#### 12", "12")], 0)])
def test_without_lessons_the_checkpoint_stays_what_it_was(
    tmp_path: Path, student: Path, traces: list[dict[str, Any]], steps: int
) -> None:
    trainer, _, checkpoint = run(tmp_path, student, traces, steps=steps)
    assert trainer.calls == 0
    assert checkpoint.name == "base"
    assert json.loads((tmp_path / "distill" / "curve.json").read_text()) == []


def test_other_forms_are_rewritten_in_the_benchmarks_own(tmp_path: Path, student: Path) -> None:
    tagged = "<think>7 + 5 = 12</think> <answer>12</answer>"
    traces = [
        trace("7 + 5?", tagged, "12"),
        trace("7 + 6?", tagged, "12", before="May I ask?"),
        trace("7 + 7?", "Seven and seven. The answer is 14.", "14", benchmark="gsm8k"),  # its truth without a marker
        trace("7 + 8?", r"Fifteen: $\boxed{15}$", "15"),
        trace("7 + 9?", tagged, None),
        trace("7 + 10?", r"<think>$\frac{1}{2}$</think><answer>$\frac{1}{2}$</answer>", "0.5", benchmark="math"),
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert counts == fates(kept=5, unknown=1)
    how = {name: benchmarks.load(name).prompt(Problem("", name, "?", "")) for name in ("arithmetic", "gsm8k", "math")}
    learnt = [(decoded(prompt, student), decoded(answer[:-1], student)) for prompt, answer in trainer.examples]
    assert learnt == [
        (f"User: 7 + 5{how['arithmetic']}\nAssistant:", "7 + 5 = 12\n#### 12"),
        (f"User: May I ask?\nAssistant: Yes?\nUser: 7 + 6{how['arithmetic']}\nAssistant:", "7 + 5 = 12\n#### 12"),
        (f"User: 7 + 7{how['gsm8k']}\nAssistant:", "Seven and seven. The answer is 14.\n#### 14"),
        (f"User: 7 + 8{how['arithmetic']}\nAssistant:", "Fifteen: $\\boxed{15}$\n#### 15"),
        (f"User: 7 + 9{how['arithmetic']}\nAssistant:", "7 + 5 = 12\n#### 12"),
        (f"User: 7 + 10{how['math']}\nAssistant:", "$\\frac{1}{2}$\nThe answer is $\\boxed{\\frac{1}{2}}$."),
    ]


def test_other_forms_are_rewritten_without_a_truth_too(tmp_path: Path, student: Path) -> None:
    traces = [
        trace("How old is Ann?", r"Eighteen: $\boxed{18}$", None, benchmark="gsm8k"),
        trace("How old is Bob?", "Nineteen.\n#### 19", None, benchmark="math"),
        trace("How old is Cid?", "She is 20. The answer is 20.\n#### 20", None, benchmark="gsm8k"),  # its own form
        trace("How old is Dan?", "Twenty-one.", None, benchmark="gsm8k"),  # whose answer nobody finds
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert counts == fates(unknown=4)
    how = {name: benchmarks.load(name).prompt(Problem("", name, "?", "")) for name in ("gsm8k", "math")}
    learnt = [(decoded(prompt, student), decoded(answer[:-1], student)) for prompt, answer in trainer.examples]
    assert learnt == [
        (f"User: How old is Ann{how['gsm8k']}\nAssistant:", "Eighteen: $\\boxed{18}$\n#### 18"),
        (f"User: How old is Bob{how['math']}\nAssistant:", "Nineteen.\nThe answer is $\\boxed{19}$."),
        ("User: How old is Cid?\nAssistant:", "She is 20. The answer is 20.\n#### 20"),
        ("User: How old is Dan?\nAssistant:", "Twenty-one."),
    ]


def test_a_solution_that_contradicts_its_truth_or_itself_is_dropped(tmp_path: Path, student: Path) -> None:
    traces = [
        trace("7 + 5?", "<think>It is 12.</think> <answer>13</answer>", "12"),
        trace("7 + 5?", "The answer is 12. #### 13\n#### 13", "12"),
        trace("7 + 5?", "<think>It is 12.</think> <answer>1", "12"),  # cut off
        trace("7 + 5?", "<think>So</think><answer>twelve</answer>", "12"),
        trace("7 + 5?", "<html>502 Bad Gateway</html>", "12"),
    ]
    trainer, counts, _ = run(tmp_path, student, traces)
    assert counts == fates(dropped=2, unreadable=3)
    assert trainer.calls == 0


def test_several_solutions_of_a_problem_up_to_a_limit(tmp_path: Path, student: Path) -> None:
    ways = ["7 + 5 = 12\n#### 12", "5 + 7 = 12\n#### 12", "7 + 5 = 12\n#### 12", "#### 12", "#### 13", "6 + 6\n#### 12"]
    other = trace("5 + 7?", "#### 12", "12")
    trainer, counts, _ = run(tmp_path, student, [*(trace("7 + 5?", way, "12") for way in ways), other], per_problem=2)
    assert counts == fates(kept=3, duplicate=1, surplus=2, dropped=1)
    answers = [decoded(answer[:-1], student) for _, answer in trainer.examples]
    assert answers == [ways[0], ways[1], "#### 12"]


def test_a_solution_that_is_too_long_takes_nobodys_place(tmp_path: Path, student: Path) -> None:
    ways = ["x" * 2000 + "\n#### 12", "7 + 5 = 12\n#### 12", "#### 12"]
    _, counts, _ = run(tmp_path, student, [trace("7 + 5?", way, "12") for way in ways], per_problem=2)
    assert counts == fates(kept=2, too_long=1)


def test_what_came_of_each_source_and_which_exam_problems_were_met(tmp_path: Path, student: Path) -> None:
    problem = Arithmetic(levels=["1"]).problems("test")[17]
    traces = [
        trace("7 + 5?", "#### 12", "12") | {"source": "2026-11-20.jsonl:1"},
        trace("7 + 6?", "#### 12", "13") | {"source": "2026-11-20.jsonl:2"},
        trace("7 + 7?", "#### 14", None) | {"teacher": "wise", "source": "asked by night"},
        trace(problem.question, f"#### {problem.truth}", problem.truth) | {"source": "some.jsonl:9"},
    ]
    run(tmp_path, student, traces)
    sources = json.loads((tmp_path / "distill" / "sources.json").read_text())
    assert sources == [
        {"teacher": "me", "source": "2026-11-20.jsonl", **fates(kept=1, dropped=1)},
        {"teacher": "me", "source": "some.jsonl", **fates(exam=1)},
        {"teacher": "wise", "source": "asked by night", **fates(unknown=1)},
    ]
    (hit,) = json.loads((tmp_path / "distill" / "contamination.json").read_text())
    assert (hit["source"], hit["question"], hit["match"], hit["share"]) == (
        "some.jsonl:9",
        problem.question,
        "exact",
        1,
    )


def test_what_the_steps_have_no_room_for_waits_for_a_later_night(tmp_path: Path, student: Path) -> None:
    lines = synthetic_journal.traces("1", 50, ("1", "2"), "2026-11-20")
    columns = ("response", "teacher", "benchmark", "truth")
    traces = [
        {name: line[name] for name in columns}
        | {"messages": json.dumps(line["messages"]), "source": f"2026-11-20.jsonl:{number}"}
        for number, line in enumerate(lines, 1)
    ]
    trainer, counts, _ = run(tmp_path / "one", student, traces, steps=2)
    assert counts == fates(kept=32, later=18)
    assert len(trainer.examples) == 32
    later = waiting(tmp_path / "one")
    assert len(later) == 18
    assert later < {solution_of(json.loads(trace["messages"]), trace["response"]) for trace in traces}
    run(tmp_path / "again", student, traces, steps=2)
    assert waiting(tmp_path / "again") == later
    run(tmp_path / "tomorrow", student, traces, steps=2, drawn_by="tomorrow")
    assert waiting(tmp_path / "tomorrow") != later
    assert run(tmp_path / "off", student, traces, steps=0)[1] == fates(later=50)


def test_a_benchmark_of_ones_own_judges_its_traces(tmp_path: Path, student: Path) -> None:
    """A prompt that is one of its own is that problem's; any other is the question."""
    right = [trace("Say owl! Loudly.", "OWL", "OWL", "shouted"), trace("Say cat", "CAT", "CAT", "shouted")]
    wrong = [
        trace("Say owl! Loudly.", "owl", "OWL", "shouted"),
        trace("Say dog", "<answer>DOG</answer>", "", "shouted"),
    ]
    trainer, counts, _ = run(tmp_path, student, [*right, *wrong, trace("Say cow", "cow", None, "shouted")])
    assert counts == fates(kept=2, dropped=2, unknown=1)
    assert {decoded(answer[:-1], student) for _, answer in trainer.examples} == {"OWL", "CAT", "cow"}


def test_what_is_held_out_waits_by_what_it_said_before_it_was_rewritten(tmp_path: Path, student: Path) -> None:
    came = trace("7 + 5?", "<think>7 + 5 = 12</think> <answer>12</answer>", "12")
    _, counts, _ = run(tmp_path, student, [came], unseen=(opening(json.loads(came["messages"])),))
    assert counts == fates(held_out=1)
    assert waiting(tmp_path) == {solution_of(json.loads(came["messages"]), came["response"])}


def waiting(place: Path) -> set[str]:
    return {*json.loads((place / "distill" / "later.json").read_text())}


def test_the_generated_day_is_learnt_word_for_word(tmp_path: Path, student: Path) -> None:
    """192 exercises, as the starter night has them: none rewritten, none taken for a problem of the exam."""
    columns = ("response", "teacher", "benchmark", "truth")
    lines = synthetic_journal.traces("1", 192, ("1", "2"), "2026-11-20")
    traces = [{name: line[name] for name in columns} | {"messages": json.dumps(line["messages"])} for line in lines]
    trainer, counts, _ = run(tmp_path, student, traces, steps=12)
    assert counts == fates(kept=192)
    learnt = [(decoded(prompt, student), decoded(answer[:-1], student)) for prompt, answer in trainer.examples]
    assert learnt == [(f"User: {line['messages'][0]['content']}\nAssistant:", line["response"]) for line in lines]
