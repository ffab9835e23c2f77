"""A home for exams and vaults whose engine answers from a table."""

from pathlib import Path

from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.run.context import Night
from models.checkpoint import keep, write_lineage
from tasks.registry.mlflow_registry import Version
from tests.tasks.doubles.exam import TableEngine, gsm8k
from tests.tasks.doubles.student import write_student

RIGHT = {f"Number {number}?": f"#### {number}" for number in range(10)}
WRONG = {f"Number {number}?": "#### 99" for number in range(10)}


class School:
    """A home with two students, and nights whose engine answers from a table."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        root.mkdir()
        rows = [(f"Number {number}?", f"#### {number}") for number in range(10)]
        self.source = gsm8k(root / "gsm8k", rows)
        self.first, self.second = self.make("first"), self.make("second")

    def make(self, weights: str) -> Path:
        draft = write_student(self.home.checkpoints / "draft")
        (draft / "model.safetensors").write_text(weights)
        write_lineage(draft, None)
        return keep(draft, self.home.checkpoints)

    def night(self, date: str, answers: dict[str, str], vault: int | None = 6) -> tuple[Night, TableEngine]:
        target = f"exam.target={{benchmark: gsm8k, source: {self.source}, problems: 4}}"
        settings = [
            target,
            "exam.guards=[]",
            "exam.english_margin=null",
            f"exam.vault={vault or 'null'}",
            "engine.max_model_len=4096",
        ]
        night = Night(self.home, date, load_night(STARTER, settings))
        night.engine.end()
        night.trainer.end()
        night.engine = engine = TableEngine(self.first, answers)  # pyright: ignore
        return night, engine

    def registered(self) -> list[Version]:
        """Under numbers as the registry gives them; the weights of one are gone."""
        digests = ("0" * 20, self.first.name, self.second.name)
        return [
            Version(str(n), digest, "", "2026-11-20", "champion", 0.5, True, ()) for n, digest in enumerate(digests, 1)
        ]
