"""The distillation stage: what it hands to the trainer and what it writes."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from conf.schema import BenchmarkConfig, EngineConfig, SandboxConfig, StudentConfig, TrainerConfig
from conf.sections.lessons import DistillConfig
from models.hf.checkpoint import write_learned
from models.hf.loading import load_tokenizer
from models.lessons.pace import Pace, fix_steps, plan_steps
from models.lessons.preference_data import opening
from models.rollout import Rollout
from rewards.arithmetic import Arithmetic
from tasks.distillation.distill import distill
from tasks.distillation.trace_filter import FATES, Trace
from tasks.journal.tables import TRACES
from tasks.rollouts.verified import Player
from tasks.stage import Artifact
from tasks.tables import write_rollouts
from tasks.training import trainer_process
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.student import END, write_student
from tests.tasks.doubles.tables import run_stage, write_stage

RIGHT = Trace([{"role": "user", "content": "7 + 5?"}], "7 + 5 = 12\n#### 12", "me", "arithmetic", "12", "a.jsonl:1")


class RecordingTrainer:
    """Records the examples that it is given, with their lessons' names."""

    def __init__(self) -> None:
        self.examples: list[tuple[list[int], list[int]]] = []
        self.names: list[str | None] = []
        self.settled: list[str] = []

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[Path, list[dict[str, float]]]:
        assert function is trainer_process.lesson
        checkpoint, trainer_config, lesson, self.examples, checkpoints, pace, self.names, self.settled = arguments
        assert checkpoint.name == "base"
        steps = len(plan_steps(len(self.examples), lesson, trainer_config.seed))
        if pace is not None:
            steps = fix_steps(pace, steps, 1.0).steps
        return checkpoints / "taught", [{"step": step + 1.0, "loss": 2.0 - step} for step in range(steps)]


def run(
    folder: Path,
    student: Path,
    traces: list[Trace],
    *,
    max_tokens: int = 1000,
    steps: int = 3,
    unseen: tuple[str, ...] = (),
    answers: dict[str, str] | None = None,
    rehearsed: Artifact | None = None,
    share: float = 0.0,
    pace: Pace | None = None,
    size: int = 16,
    trainer: RecordingTrainer | None = None,
) -> tuple[list[tuple[list[int], list[int]]], dict[str, int], Artifact]:
    """Run the stage; return the examples learned, the non-zero counts, and what it wrote."""
    columns = ("messages", "response", "teacher", "benchmark", "truth", "source", "lesson")
    rows = [{name: asdict(trace)[name] for name in columns} for trace in traces]
    rows = [row | {"messages": json.dumps(row["messages"])} for row in rows]
    day = write_stage(folder / "freeze_journal", {"traces": (TRACES, rows)})
    trainer = trainer or RecordingTrainer()
    written = run_stage(
        distill,
        folder / "distill",
        traces=(day,),
        checkpoint=student,
        config=DistillConfig(steps=steps, batch_size=size, max_epochs=1, rehearsal=share),
        trainer_config=TrainerConfig(),
        student=StudentConfig(),
        sandbox=SandboxConfig(),
        benchmarks=(BenchmarkConfig(name="tests.tasks.doubles.benchmarks:Shouted"),),
        exam_questions=tuple(problem.question for problem in Arithmetic(levels=["1"]).problems("test")),
        unseen=unseen,
        drawn_by="tonight",
        max_tokens=max_tokens,
        checkpoints=folder / "checkpoints",
        trainer=trainer,
        rehearsed=rehearsed,
        answering=answers and Player(student, StudentConfig(), EngineConfig(), TableEngine(student, answers), 48, 0.0),
        pace=pace,
    )
    counts = written.read_json("counts.json")
    assert tuple(counts) == FATES
    return trainer.examples, {fate: number for fate, number in counts.items() if number}, written


def test_a_correct_solution_is_learned_token_by_token(tmp_path: Path, student: Path) -> None:
    ((prompt, answer),), counts, written = run(tmp_path, student, [RIGHT])
    tokenizer: Any = load_tokenizer(student)
    assert counts == {"kept": 1}
    assert tokenizer.decode(prompt) == "User: 7 + 5?\nAssistant:"
    assert answer[-1] == END
    assert tokenizer.decode(answer[:-1]) == "7 + 5 = 12\n#### 12"
    assert (written.folder / "checkpoint.txt").read_text() == "taught"
    assert written.read_json("curve.json") == [{"step": 1.0, "loss": 2.0}]


@pytest.mark.parametrize(("traces", "steps"), [([], 3), ([RIGHT], 0)])
def test_without_lessons_the_checkpoint_stays(tmp_path: Path, student: Path, traces: list[Trace], steps: int) -> None:
    examples, _, written = run(tmp_path, student, traces, steps=steps)
    assert examples == []
    assert (written.folder / "checkpoint.txt").read_text() == "base"
    assert written.read_json("curve.json") == []


def test_a_trained_student_learns_only_what_it_fails(tmp_path: Path, student: Path) -> None:
    failed = Trace([{"role": "user", "content": "2 + 2?"}], "2 + 2 = 4\n#### 4", "me", "arithmetic", "4", "a.jsonl:2")
    unjudged = Trace([{"role": "user", "content": "Who are you?"}], "A student.", "me", None, None, "a.jsonl:3")
    mine = Trace([{"role": "user", "content": "hey"}], "HEY", "me", "shouted", "HEY", "a.jsonl:4")
    foreign = Trace([{"role": "user", "content": "2 * 2?"}], "4", "me", "nowhere:Unknown", "4", "a.jsonl:5")
    owl = Trace([{"role": "user", "content": "Say owl! Loudly."}], "OWL", "me", "shouted", "OWL", "a.jsonl:6")
    answers = {"7 + 5?": "#### 12", "2 + 2?": "#### 5", "hey": "HEY", "Say owl! Loudly.": "OWL"}
    examples, counts, _ = run(tmp_path, student, [RIGHT, failed, unjudged, mine, foreign, owl], answers=answers)
    assert counts == {"kept": 1, "unknown": 2, "known": 3}
    assert len(examples) == 3


def own_answers(folder: Path, count: int) -> Artifact:
    """What the student said: after the tokens 5 and 6 a token each, from 7 on."""
    said = [Rollout("", n, 0, [5, 6], [7 + n], [-1.0], [True], "length", "cut off", "base") for n in range(count)]
    (folder / "rehearsal").mkdir()
    write_rollouts(folder / "rehearsal" / "rollouts.parquet", said)
    return Artifact(folder=folder / "rehearsal", digest="")


@pytest.mark.parametrize(("traces", "learned"), [([RIGHT], 3), ([], 0)])
def test_rehearsed_answers_are_learned_among_traces(
    tmp_path: Path, student: Path, traces: list[Trace], learned: int
) -> None:
    examples, counts, _ = run(tmp_path, student, traces, rehearsed=own_answers(tmp_path, 9), share=2 / 3)
    assert counts == ({"kept": 1} if traces else {})
    assert len(examples) == learned
    assert examples[1:] == [([5, 6], [7]), ([5, 6], [8])][: len(examples)]


def test_rehearsed_answers_take_room_from_traces(tmp_path: Path, student: Path) -> None:
    further = [replace(RIGHT, response=f"{n} + 5 = 12\n#### 12") for n in range(3)]
    rehearsed = own_answers(tmp_path, 47)
    examples, counts, _ = run(tmp_path, student, [RIGHT, *further], rehearsed=rehearsed, share=47 / 48)
    assert (len(examples), counts) == (48, {"kept": 1, "later": 3})  # 3 steps of 16


def test_a_conversation_that_the_template_refuses_is_counted(tmp_path: Path) -> None:
    strict = write_student(tmp_path / "strict")
    load_tokenizer(strict, False).chat_template = "{{ raise_exception('speakers must take turns') }}"  # it is cached
    examples, counts, _ = run(tmp_path, strict, [RIGHT])
    assert (examples, counts) == ([], {"refused": 1})


def test_prompt_and_answer_must_fit_together(tmp_path: Path, student: Path) -> None:
    length = len("User: 7 + 5?\nAssistant:") + len(RIGHT.response) + 1
    assert run(tmp_path / "fits", student, [RIGHT], max_tokens=length)[1] == {"kept": 1}
    assert run(tmp_path / "short", student, [RIGHT], max_tokens=length - 1)[1] == {"too_long": 1}


def test_matches_with_the_exam_are_reported(tmp_path: Path, student: Path) -> None:
    problem = Arithmetic(levels=["1"]).problems("test")[17]
    asked = Trace([{"role": "user", "content": problem.question}], "?", "me", "arithmetic", problem.truth, "a.jsonl:9")
    _, counts, written = run(tmp_path, student, [asked])
    assert counts == {"exam": 1}
    (match,) = written.read_json("contamination.json")
    assert match["question"] == match["asked"] == problem.question
    assert (match["source"], match["match"], match["share"]) == ("a.jsonl:9", "exact", 1)
    assert written.read_json("sources.json")[0]["source"] == "a.jsonl"


def test_what_is_held_out_or_has_no_room_is_left_to_a_later_night(tmp_path: Path, student: Path) -> None:
    """What is wrong is settled: no night need read it again."""
    secret = Trace([{"role": "user", "content": "Who are you?"}], "A student.", "me", None, None, None, "secret")
    wrong = replace(RIGHT, response="#### 13", lesson="wrong")
    long = replace(RIGHT, response=f"{'7 + 5 = 12, ' * 100}\n#### 12", lesson="long")
    more = [replace(RIGHT, response=f"{n} + 5 = 12\n#### 12", lesson=str(n)) for n in range(3)]
    trainer, unseen = RecordingTrainer(), (opening(secret.messages),)
    traces = [secret, wrong, long, *more]
    _, counts, _ = run(tmp_path, student, traces, unseen=unseen, steps=1, size=2, trainer=trainer)
    assert counts == {"held_out": 1, "dropped": 1, "too_long": 1, "kept": 2, "later": 1}
    assert (len(trainer.names), trainer.settled) == (2, ["wrong"])
    assert {*trainer.names} < {"0", "1", "2"}


def test_what_the_checkpoint_has_learned_is_left_out(tmp_path: Path) -> None:
    write_learned(student := write_student(tmp_path / "base"), ["known"])
    examples, counts, _ = run(tmp_path, student, [replace(RIGHT, lesson="known")])
    assert (examples, counts) == ([], {})


def test_solutions_that_did_not_come_in_time_return_on_a_later_night(tmp_path: Path, student: Path) -> None:
    """A step takes a second here, so four of nine steps are taken, and what came is known by its order."""
    further = [replace(RIGHT, response=f"{n} + 5 = 12\n#### 12") for n in range(4)]
    others = [replace(RIGHT, messages=[{"role": "user", "content": f"7 + 5?{' ' * n}"}]) for n in range(1, 6)]
    pace = Pace(4.9, tmp_path / "pace.json")
    examples, counts, written = run(tmp_path, student, [*further, *others], steps=9, size=1, pace=pace)
    assert (len(examples), counts) == (9, {"kept": 4, "later": 5})
    assert written.read_json("pace.json") == {"planned": 9, "steps": 4, "seconds_a_step": 1.0}
