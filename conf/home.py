"""Where everything lies that a night writes: one home, one folder a night, one folder a stage."""

import os
from dataclasses import dataclass
from pathlib import Path

SUMMARY = "summary.json"  # in the folder of a night, which is then finished


class InputError(Exception):
    """The user's input is wrong: one line that says what, where, and what is allowed. Exit code 2."""


class NightError(Exception):
    """The night cannot go on: one line that says what, where, and what to do. Exit code 1."""


@dataclass(frozen=True)
class Home:
    """The folder that holds the journal, the nights, the checkpoints and the databases."""

    root: Path

    @classmethod
    def here(cls) -> "Home":
        """`NIGHTSCHOOL_HOME`; not set or empty: `./school`."""
        return cls(Path(os.environ.get("NIGHTSCHOOL_HOME") or "school").resolve())

    @property
    def journal(self) -> Path:
        """One append-only JSONL file a day; the night never edits it."""
        return self.root / "journal"

    @property
    def nights(self) -> Path:
        """One folder a night, named by its date."""
        return self.root / "nights"

    @property
    def checkpoints(self) -> Path:
        """Hugging Face model folders, named by their content's digest."""
        return self.root / "checkpoints"

    @property
    def database_file(self) -> Path:
        """MLflow's SQLite database."""
        return self.root / "mlflow.db"

    @property
    def database(self) -> str:
        """The URL of MLflow's SQLite database."""
        return f"sqlite:///{self.database_file}"

    def night(self, date: str) -> Path:
        """The folder of one night."""
        return self.nights / date
