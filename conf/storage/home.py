"""Where everything lies that a night writes: one home, one folder a night, one folder a stage."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

SHORT_REPORT = "report.md"  # beside report.html: the same for a chat or an e-mail
DIGEST = re.compile(r"[0-9a-f]{20}")  # a checkpoint's folder; one of another name is none of ours
SUMMARY = "summary.json"  # in the folder of a night, which is then finished


class InputError(Exception):
    """The user's input is wrong: one line that says what, where, and what is allowed. Exit code 2."""


class NightError(Exception):
    """The night cannot go on: one line that says what, where, and what to do. Exit code 1."""


LAYOUT = 1  # the version of what lies where in a home, and of what the files in it mean
# What makes a folder a home, one that a night never ended in too.
PARTS = ("journal", "nights", "checkpoints", "exams", "prefect", "mlflow.db", "night.lock", "layout.json")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def inside(folder: Path, name: str) -> Path:
    """`folder / name`, where the name was read from a file or a database.

    Raises NightError for a name that would lead out of the folder, or that is the folder itself.
    """
    if not NAME.fullmatch(name):
        raise NightError(f"{folder}: {name[:60]!r} is no name of anything in it: what named it was damaged or forged")
    return folder / name


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
    def exams(self) -> Path:
        """What was answered in exams: a folder for each checkpoint and part (see `tasks/evaluation/cache.py`)."""
        return self.root / "exams"

    @property
    def teacher(self) -> Path:
        """What a teacher answered: a file an answer, so that it is asked nothing twice. May be removed at any time."""
        return self.root / "teacher"

    @property
    def database_file(self) -> Path:
        """MLflow's SQLite database."""
        return self.root / "mlflow.db"

    @property
    def database(self) -> str:
        """The URL of MLflow's SQLite database."""
        return f"sqlite:///{self.database_file}"

    def night(self, date: str) -> Path:
        """The folder of one night. Raises NightError where the date is nothing that could name one."""
        return inside(self.nights, date)

    def own(self) -> bool:
        """Makes the home, its owner's alone (0700), or narrows one that others can enter. Returns whether it did that.

        Raises InputError where the folder cannot be narrowed, or where others may need it: it holds other things than
        a home does.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.root.stat().st_mode & 0o077:
            return False
        another = "name a folder of its own: NIGHTSCHOOL_HOME=/path/to/school"
        if any(self.root.iterdir()) and not any((self.root / part).exists() for part in PARTS):
            raise InputError(f"{self.root}: others can enter this folder, and it holds other things; {another}")
        try:
            self.root.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"{self.root}: others can enter this home, chmod 700: {error.strerror}; {another}"
            ) from None
        return True

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
