"""Exam problems can enter no training stage: every way in is tried with the question in another dress.

Each way gets the leak and an innocent line; what the stage would teach, ask or practise contains only the second.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, EngineConfig, GrpoConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.benchmark import ExamPart
from conf.sections.lessons import DistillConfig, LessonsConfig, RewardModelConfig, TeacherConfig, TraceFile
from models.hf.loading import load_tokenizer
from tasks.distillation.distill import distill
from tasks.distillation.query_teacher import ask_teacher
from tasks.distillation.trace_sources import import_traces, own_answers
from tasks.evaluation.evaluate import quiz
from tasks.journal.tables import CORRECTIONS, FEEDBACK, HELD_OUT, PREFERENCES, TRACES, WORDS
from tasks.reward_model.fit import fit_reward_model
from tasks.reward_model.owner_prompts import owner_prompts
from tasks.rollouts.select_prompts import select_prompts
from tasks.rollouts.verified import Player
from tasks.stage import Artifact, Stage
from tasks.tables import EVALUATIONS, OWNER_PROMPTS, PROMPTS, read_table
from tasks.training.feedback import feedback_lesson
from tests.models.support.chat_server import chat_server, said
from tests.rewards.datasets import write_rows
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import RIGHT, WRONG, run_stage, write_round, write_stage

EXAM = "Two fair six-sided dice are rolled. What is the probability that the sum of the two numbers is at least 9?"
INNOCENT = "How many mice does an owl that hunts every night of the week eat?"
SIGNS = ("dice", "an owl that hunts every night")  # how each is recognised in what was learned
# in the hardest dress: that each is seen through is proven in test_contamination.py
LEAK = f"Problem 7 (3 points): {EXAM.replace('fair', 'plain')} It is 10 of 36."
EXCLUDED = ("gsm8k/test/0", EXAM)


class Trainer:
    """Remembers what it is given to learn."""

    def __init__(self, student: Path) -> None:
        self.tokenizer: Any = load_tokenizer(student)
        self.texts: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.texts += self.texts_in(arguments)
        return arguments[0], []

    def texts_in(self, value: Any) -> Iterator[str]:
        """All token ids in lists, tuples and dataclasses, as text."""
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = [getattr(value, field.name) for field in dataclasses.fields(value)]
        if isinstance(value, list | tuple) and value:
            if all(isinstance(item, int) for item in value):
                yield self.tokenizer.decode(list(value))
            else:
                for item in value:
                    yield from self.texts_in(item)


@dataclasses.dataclass
class LessonInputs:
    """A folder and a student for one way in."""

    folder: Path
    student: Path

    def run(self, stage: Stage, **arguments: Any) -> Artifact:
        return run_stage(stage, self.folder / stage.name, **arguments)

    @property
    def earlier_nights(self) -> dict[str, Any]:
        """Arguments of a stage that reads what the student has answered in earlier nights."""
        date = "2026-11-20"
        return {"model": "starter", "scores": (), "upto": 0, "date": date, "night": self.folder / "nights" / date}


def said_in(*turns: str) -> str:
    return json.dumps([{"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(turns)])


def gsm8k(inputs: LessonInputs, leak: str) -> str:
    """A training split that holds the exam's question, as a user's own source may."""
    folder = inputs.folder / "gsm8k"
    folder.mkdir()
    rows = ({"question": question, "answer": "#### 4"} for question in (leak, INNOCENT))
    return write_rows(folder / "train.jsonl", *rows)


def selected(inputs: LessonInputs, leak: str, *drawn: Artifact) -> list[str]:
    made = inputs.run(
        select_prompts,
        sources=(BenchmarkConfig(name="gsm8k", source=gsm8k(inputs, leak)),),
        grpo=GrpoConfig(),
        student=StudentConfig(),
        checkpoint=inputs.student,
        solve_rates=None,
        seed="1",
        exam_questions=EXCLUDED,
        max_prompt_tokens=10_000,
        count=10,
        drawn=drawn,
    )
    return list(read_table(made.folder / "prompts.parquet", PROMPTS).messages)


def refilled(inputs: LessonInputs, leak: str) -> list[str]:
    other = {"problem_id": "gsm8k/train/9", "question": "?", "messages": "[]", "kind": "x", "source": "benchmark"}
    rows = [other | {"group": 0, "prompt_token_ids": [1]}]
    return selected(inputs, leak, write_stage(inputs.folder / "drawn", {"prompts": (PROMPTS, rows)}))


def quizzed(inputs: LessonInputs, leak: str) -> list[str]:
    engine: Any = TableEngine(inputs.student, {})
    made = inputs.run(
        quiz,
        part=ExamPart(benchmark="gsm8k", source=gsm8k(inputs, leak)),
        seed="1",
        player=Player(inputs.student, StudentConfig(), EngineConfig(max_model_len=4096), engine, 8),
        sandbox=SandboxConfig(),
        exam_questions=EXCLUDED,
    )
    return list(read_table(made.folder / "evaluations.parquet", EVALUATIONS).question)


def trace(response: str, *turns: str) -> dict[str, Any]:
    return {"messages": said_in(*turns), "response": response, "teacher": "me"}


def distilled(inputs: LessonInputs, *traces: Artifact) -> list[str]:
    options = {"traces": traces, "config": DistillConfig(steps=1), "sandbox": SandboxConfig(), "benchmarks": ()}
    return taught(inputs, distill, **options, unseen=(), drawn_by="tonight", max_tokens=10_000)


def taught(inputs: LessonInputs, stage: Stage, **options: Any) -> list[str]:
    """What a stage gives the trainer."""
    trainer = Trainer(inputs.student)
    inputs.run(
        stage,
        **options,
        checkpoint=inputs.student,
        trainer_config=TrainerConfig(),
        student=StudentConfig(),
        exam_questions=(EXAM,),
        checkpoints=inputs.folder,
        trainer=trainer,
    )
    return trainer.texts


def journal_traces(inputs: LessonInputs, *rows: dict[str, Any]) -> list[str]:
    innocent = trace("About 4.", INNOCENT)
    return distilled(inputs, write_stage(inputs.folder / "day", {"traces": (TRACES, [*rows, innocent])}))


def files_of_traces(inputs: LessonInputs, leak: str) -> list[str]:
    file = inputs.folder / "traces.jsonl"
    write_rows(file, *({"question": question, "response": "#### 4"} for question in (leak, INNOCENT)))
    files = (TraceFile(source=str(file), benchmark="gsm8k"),)
    return distilled(inputs, inputs.run(import_traces, files=files, own={}))


def own_answers_of_nights_with_another_exam(inputs: LessonInputs, leak: str) -> list[str]:
    hard = {question: [RIGHT, WRONG, WRONG] for question in (leak, INNOCENT)}
    write_round(inputs.folder / "nights/2026-11-19/round-01", hard, benchmark="gsm8k", truth="right")
    answers = inputs.run(own_answers, per_problem=4, **inputs.earlier_nights)
    return distilled(inputs, of_no_benchmark(inputs, answers))


def asked(inputs: LessonInputs, leak: str, *questions: str) -> tuple[Artifact, list[str]]:
    """Query a teacher that tells the exam's question where it hears "tell". Return the stage, and what was asked."""
    write_round(inputs.folder / "nights/2026-11-19/round-01", {question: [WRONG] for question in questions})
    with chat_server(lambda asked: said(leak if "tell" in str(asked["messages"]) else "About 4.")) as server:
        answers = inputs.run(
            ask_teacher,
            config=TeacherConfig(endpoint={"base_url": server.url, "model": "wise"}, answers=1),
            exam_questions=(EXAM,),
            cache=inputs.folder / "teacher",
            **inputs.earlier_nights,
        )
    return answers, [json.dumps(request["messages"]) for request in server.requests]


def answers_of_a_teacher(inputs: LessonInputs, leak: str) -> list[str]:
    answers, _ = asked(inputs, leak, "tell", INNOCENT)
    return distilled(inputs, of_no_benchmark(inputs, answers))


def of_no_benchmark(inputs: LessonInputs, traces: Artifact) -> Artifact:
    """The two traces of a stage, whatever their verifier would say."""
    rows = read_table(traces.folder / "traces.parquet", TRACES)
    assert len(rows) == 2
    rows["benchmark"] = None
    return write_stage(inputs.folder / "answers", {"traces": (TRACES, rows.to_dict("records"))})


def learned(inputs: LessonInputs, kind: str, table: str, schema: Any, rows: list[Any]) -> list[str]:
    day = write_stage(inputs.folder / "day", {table: (schema, rows)})
    config = getattr(LessonsConfig(), kind)
    return taught(inputs, feedback_lesson, config=config, day=day, max_tokens=10_000, pace=None)


def corrected(inputs: LessonInputs, question: str, correction: str) -> list[str]:
    pairs = ((question, correction), (INNOCENT, "About 4."))
    rows = [{"messages": said_in(asked), "response": "Hm.", "correction": better} for asked, better in pairs]
    return learned(inputs, "corrections", "corrections", CORRECTIONS, rows)


def words(inputs: LessonInputs, leak: str) -> list[str]:
    rows = [{"text": f"A page of my notes.\n\n{leak}\n\nIt is 10 of 36."}, {"text": f"{INNOCENT} About 4."}]
    return learned(inputs, "words", "words", WORDS, rows)


def feedback(inputs: LessonInputs, leak: str) -> list[str]:
    rows = [{"messages": said_in(question), "response": "About 4.", "value": 1.0} for question in (leak, INNOCENT)]
    rows.append({"messages": said_in("Say something."), "response": leak, "value": -1.0})
    return learned(inputs, "feedback", "feedback", FEEDBACK, rows)


def preferences(leak: str, *, held_out: bool = False) -> list[dict[str, Any]]:
    asked = [(leak, ["10 of 36.", "9."]), ("Say something.", ["Hm.", leak]), (INNOCENT, ["About 4.", "None."])]
    common = {"chosen": 0, "policy": "x", "held_out": held_out}
    return [{"messages": said_in(question), "responses": json.dumps(answers), **common} for question, answers in asked]


def picks(inputs: LessonInputs, leak: str) -> list[str]:
    return learned(inputs, "picks", "preferences", PREFERENCES, preferences(leak))


def reward_model(inputs: LessonInputs, leak: str) -> list[str]:
    tables = {"preferences": (PREFERENCES, preferences(leak, held_out=True)), "corrections": (CORRECTIONS, [])}
    texts = taught(
        inputs,
        fit_reward_model,
        day=write_stage(inputs.folder / "day", tables),
        date="2026-11-20",
        config=RewardModelConfig(),
        broke=None,
    )
    held_out = read_table(inputs.folder / fit_reward_model.name / "held_out.parquet", HELD_OUT)
    return [*texts, *held_out.messages, *held_out.responses]


def owners_prompts(inputs: LessonInputs, leak: str) -> list[str]:
    tables = {
        "preferences": (PREFERENCES, preferences(leak)),
        "corrections": (CORRECTIONS, []),
        "feedback": (FEEDBACK, [{"messages": said_in(leak, "Hm.", "Well?"), "response": "4", "value": 1.0}]),
    }
    made = inputs.run(
        owner_prompts,
        day=write_stage(inputs.folder / "day", tables),
        exam_questions=(EXAM,),
        checkpoint=inputs.student,
        student=StudentConfig(),
        max_prompt_tokens=10_000,
    )
    return list(read_table(made.folder / "owner_prompts.parquet", OWNER_PROMPTS).messages)


WAYS_IN: dict[str, Callable[[LessonInputs, str], list[str]]] = {
    "selected": selected,
    "refilled": refilled,
    "quizzed": quizzed,
    "traces that ask": lambda inputs, leak: journal_traces(inputs, trace("10 of 36.", leak)),
    "traces that asked before": lambda inputs, leak: journal_traces(inputs, trace("No.", leak, "10 of 36.", "Why?")),
    "traces that answer with it": lambda inputs, leak: journal_traces(inputs, trace(f"{leak}\n\n10.", "An exercise!")),
    "files of traces": files_of_traces,
    "own answers of nights with another exam": own_answers_of_nights_with_another_exam,
    "questions to a teacher": lambda inputs, leak: asked(inputs, leak, leak, INNOCENT)[1],
    "answers of a teacher": answers_of_a_teacher,
    "corrections": lambda inputs, leak: corrected(inputs, leak, "10 of 36."),
    "corrections that tell it": lambda inputs, leak: corrected(inputs, "Tell me something.", f"{leak}\n10 of 36."),
    "words": words,
    "feedback": feedback,
    "picks": picks,
    "reward model": reward_model,
    "the owner's prompts": owners_prompts,
}


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_student(tmp_path_factory.mktemp("students") / "tiny")


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_no_question_of_the_exam_comes_in(tmp_path: Path, student: Path, way_in: str) -> None:
    entered = "\n".join(WAYS_IN[way_in](LessonInputs(tmp_path, student), LEAK)).lower()
    leaked, innocent = (sign in entered for sign in SIGNS)
    assert not leaked
    assert innocent  # otherwise the way would be closed to everything
