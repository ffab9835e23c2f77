"""Where everything lies that a night writes: one home, one folder a night, one folder a stage."""

import json
import os
from dataclasses import dataclass
from pathlib import Path


class InputError(Exception):
    """The user's input is wrong: one line that says what, where, and what is allowed. Exit code 2."""


class NightError(Exception):
    """The night cannot go on: one line that says what, where, and what to do. Exit code 1."""


LAYOUT = 1  # the version of what lies where in a home, and of what the files in it mean


@dataclass(frozen=True)
class Home:
    """The folder that holds the journal, the nights, the checkpoints and the databases."""

    root: Path

    @classmethod
    def here(cls) -> "Home":
        """`NIGHTSCHOOL_HOME`; not set or empty: `./school`.

        Raises InputError where the home there is one of another version of Night school.
        """
        home = cls(Path(os.environ.get("NIGHTSCHOOL_HOME") or "school").resolve())
        home._refuse_other_layout()
        return home

    @property
    def layout_file(self) -> Path:
        """Which version of the layout this home has; a home without the file is empty, or of the first version."""
        return self.root / "layout.json"

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

    def _refuse_other_layout(self) -> None:
        try:
            version = json.loads(self.layout_file.read_text())["version"]
        except OSError:  # none yet; and whether a home can be used at all is for other checks to say
            return
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.layout_file}: it was damaged; write {json.dumps({'version': LAYOUT})} into it if this home is "
                "one of this version of Night school"
            ) from None
        if version != LAYOUT:
            age = "a newer" if isinstance(version, int) and version > LAYOUT else "another"
            raise InputError(
                f"{self.root}: {age} version of Night school wrote this home (layout {version}, this one knows "
                f"{LAYOUT}): go on with that version, or name another home with NIGHTSCHOOL_HOME"
            )
