"""The owner's prompts: each once, none that evaluates the reward model, none of the exam."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conf.schema import StudentConfig
from models.hf.loading import load_tokenizer, prompt_tokens
from models.lessons.preference_data import is_held_out
from tasks.reward_model.owner_prompts import TABLES, owner_prompts
from tasks.tables import OWNER_PROMPTS, read_table
from tests.tasks.doubles.student import write_student
from tests.tasks.doubles.tables import correction, feedback, messages, preference, run_stage, write_stage

EXAM = "Noah has 20 stamps. How many are left?"


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_student(tmp_path_factory.mktemp("students") / "tiny")
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    (folder / "chat_template.jinja").write_text(refusing + "{% for m in messages %}{{ m.content }}\n{% endfor %}")
    return folder


def find(
    folder: Path, student: Path, unseen_share: float = 0.0, longest: int = 1000, **asked: list[str]
) -> tuple[pd.DataFrame, dict[str, int]]:
    other = {
        "preferences": preference("", ["a", "b"], 0),
        "corrections": correction("", "a", "b"),
        "feedback": feedback("", "a", 1.0),
    }
    tables: dict[str, Any] = {}
    for name, schema in TABLES.items():
        rows = [other[name] | {"messages": messages} for messages in asked.get(name, [])]
        sides = [{"held_out": is_held_out(json.loads(row["messages"]), unseen_share)} for row in rows]
        tables[name] = schema, [row | side for row, side in zip(rows, sides, strict=True)]
    owner = run_stage(
        owner_prompts,
        folder / "owner",
        day=write_stage(folder / "day", tables),
        exam_questions=(EXAM, ""),
        checkpoint=student,
        student=StudentConfig(),
        max_prompt_tokens=longest,
    )
    return read_table(owner.folder / "owner_prompts.parquet", OWNER_PROMPTS), owner.read_json("counts.json")


def test_each_conversation_once_from_all_three_tables(tmp_path: Path, student: Path) -> None:
    spaced = messages("Hi").replace(": ", ":")  # the same conversation, written by another program
    table, counts = find(
        tmp_path,
        student,
        preferences=[messages("Hi"), spaced],
        corrections=[messages("Hi", "Hello!", "Who are you?")],
        feedback=[messages("Hi"), messages("Bye")],
    )
    assert sorted(table.question) == ["Bye", "Hi", "Who are you?"]
    assert counts == {"lines": 5, "used": 3, "exam": 0, "too_long": 0}
    assert table.problem_id.is_unique
    tokenizer = load_tokenizer(student)
    for row in table.to_dict("records"):
        assert list(row["prompt_token_ids"]) == prompt_tokens(tokenizer, json.loads(row["messages"]), StudentConfig())


def test_what_is_left_out_and_why(tmp_path: Path, student: Path) -> None:
    system = json.dumps([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
    table, counts = find(
        tmp_path,
        student,
        0.07,
        60,
        preferences=[
            messages("How are you?").replace(": ", ":"),
            messages("Fine"),
        ],  # the hash of the first is below 0.07
        corrections=[messages("Please: noah has\n20 Stamps.  How many are left? Thanks")],
        feedback=[system, messages("x" * 60)],
    )
    assert list(table.question) == ["Fine"]
    assert counts == {"lines": 5, "used": 1, "held_out": 1, "exam": 1, "refused": 1, "too_long": 1}


def test_a_day_without_prompts(tmp_path: Path, student: Path) -> None:
    table, counts = find(tmp_path, student)
    assert table.empty
    assert set(counts.values()) == {0}
