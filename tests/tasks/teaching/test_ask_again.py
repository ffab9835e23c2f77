"""The corrections that a candidate has learned are asked again."""

import json
from pathlib import Path
from typing import Any

from conf.schema import EngineConfig, StudentConfig
from models.hf.checkpoint import write_learned
from tasks.journal.tables import CORRECTIONS, GENERATED
from tasks.teaching.ask_again import ask_again
from tests.tasks.doubles.exam import TableEngine
from tests.tasks.doubles.tables import write_stage


def correction(question: str, **changes: Any) -> dict[str, Any]:
    said = json.dumps([{"role": "user", "content": question}])
    return {"messages": said, "response": "no", "correction": "An owl.", "lesson": question} | changes


def test_what_it_has_learned_is_asked_again(tmp_path: Path, student: Path) -> None:
    write_learned(student, ["Who?", "made up"])
    rows = [correction("Who?"), correction("left for later"), correction("made up", source=GENERATED)]
    day = write_stage(tmp_path / "freeze_journal", {"corrections": (CORRECTIONS, rows)})
    engine: Any = TableEngine(student, {"Who?": " A hen.\n"})
    inputs: dict[str, Any] = {"checkpoint": student, "student": StudentConfig(), "config": EngineConfig()}
    ask_again.write(tmp_path, day=day, **inputs, max_completion_tokens=8, engine=engine)
    found = json.loads((tmp_path / "answers.json").read_text())
    assert found == [{"question": "Who?", "correction": "An owl.", "answer": "A hen."}]
