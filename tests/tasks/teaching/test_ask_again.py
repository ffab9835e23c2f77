"""The questions whose corrections a candidate has learned are asked again."""

import json
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, StudentConfig
from tasks.journal.tables import CORRECTIONS
from tasks.teaching.day_at_night import ask_again
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.tables import write_stage


def correction(question: str, **changes: Any) -> dict[str, Any]:
    said = json.dumps([{"role": "user", "content": question}])
    return {"messages": said, "response": "no", "correction": "An owl.", "lesson": question} | changes


def test_corrected_questions_are_asked_again(tmp_path: Path, student: Path) -> None:
    """Only those that it has learned, and that fit."""
    rows = [correction("Who?"), correction("left for later"), correction("W" * 99)]
    day = write_stage(tmp_path / "freeze_journal", {"corrections": (CORRECTIONS, rows)})
    engine: Any = TableEngine(student, {"Who?": " A hen.\n"})
    inputs: dict[str, Any] = {"checkpoint": student, "student": StudentConfig(), "engine": engine}
    config, learned = EngineConfig(max_model_len=64), ("Who?", "W" * 99)
    ask_again.write(tmp_path, day=day, lessons=learned, config=config, max_completion_tokens=8, **inputs)
    found = json.loads((tmp_path / "answers.json").read_text())
    assert found == [{"question": "Who?", "correction": "An owl.", "answer": "A hen."}]
