"""The home: the folder that holds everything a night writes, with a folder for each night and each stage."""

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

SHORT_REPORT = "report.md"  # next to report.html: a report short enough for a chat or an e-mail
DIGEST = re.compile(r"[0-9a-f]{20}")  # the name of a checkpoint's folder
NIGHTS = "????-??-??"  # pattern of the names of the nights' folders
SUMMARY = "summary.json"  # in the folder of a finished night
START = "start.json"  # in a night's folder: the checkpoint that the night begins with


class InputError(Exception):
    """The user's input is wrong. The one-line message says what is wrong, where, and what is allowed. Exit code 2."""


class NightError(Exception):
    """The night cannot continue. The one-line message says what is wrong, where, and what to do. Exit code 1."""


LAYOUT = 2  # the version of a home's folders and files
EARLIER = 1  # an older layout, which is upgraded (`tasks/journal/carry_over.py`)
# A folder that contains any of these is a home, even if no night has finished in it.
PARTS = (
    *("journal", "nights", "checkpoints", "students", "exams", "prefect"),
    *("mlflow.db", "night.lock", "layout.json", "config.yaml"),
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def why_unwritable(folder: Path) -> str | None:
    """Return why nothing can be written to a folder, or None. A test write: for root, permission bits would mislead."""
    try:
        with tempfile.TemporaryDirectory(prefix=".nightschool-", dir=folder) as probe:
            Path(probe, "probe").write_bytes(b"night school")
    except OSError as error:
        return str(error.strerror)
    return None


def require_writable(folder: Path) -> None:
    """Raise InputError if nothing can be written to a folder."""
    if why := why_unwritable(folder):
        raise InputError(f"{folder}: cannot be written to ({why}); mend that, or name another home (NIGHTSCHOOL_HOME)")


def inside(folder: Path, name: str) -> Path:
    """Return `folder / name` for a name that was read from a file or a database.

    Raises NightError if the name is invalid, e.g. because it leads out of the folder or to the folder itself.
    """
    if not NAME.fullmatch(name):
        raise NightError(f"{folder}: {name[:60]!r} is not a valid name here: its source is damaged or forged")
    return folder / name


@dataclass(frozen=True)
class Home:
    """The folder that holds the journal, the nights, the checkpoints and the databases."""

    root: Path

    @classmethod
    def here(cls) -> "Home":
        """Return the home named by `NIGHTSCHOOL_HOME` (default: `./school`).

        Raises InputError if the home was written by an unsupported version of Night school.
        """
        home = cls(Path(os.environ.get("NIGHTSCHOOL_HOME") or "school").resolve())
        home._refuse_other_layout()
        return home

    @property
    def layout_file(self) -> Path:
        """The file that holds the version of this home's layout. The first night writes it."""
        return self.root / "layout.json"

    @property
    def config_file(self) -> Path:
        """The configuration that this home's commands use unless another is named. Written by `nightschool init`."""
        return self.root / "config.yaml"

    @property
    def journal(self) -> Path:
        """The journal's folder: one append-only JSONL file per day, which nights never edit."""
        return self.root / "journal"

    @property
    def nights(self) -> Path:
        """The folder of all nights, with one subfolder per night, named by its date."""
        return self.root / "nights"

    @property
    def checkpoints(self) -> Path:
        """The folder of all checkpoints: Hugging Face model folders, each named by the digest of its content."""
        return self.root / "checkpoints"

    @property
    def students(self) -> Path:
        """The folder of students trained from scratch, with one subfolder per size."""
        return self.root / "students"

    @property
    def exams(self) -> Path:
        """The folder of stored exam answers (see `tasks/evaluation/stored_answers.py`)."""
        return self.root / "exams"

    @property
    def teacher(self) -> Path:
        """The cache of teachers' answers, one file per answer: no request is paid for twice. Safe to delete."""
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
        """Return the folder of one night. Raises NightError if the date is not a valid folder name."""
        return inside(self.nights, date)

    def full_digest(self, prefix: str) -> str:
        """Return the full digest of the only checkpoint whose digest starts with `prefix` (4 to 19 hex digits).

        Returns `prefix` itself if it has another form or no checkpoint matches. Raises InputError if several match.
        """
        if not re.fullmatch(r"[0-9a-f]{4,19}", prefix):
            return prefix
        digests = [folder.name for folder in self.checkpoints.glob(f"{prefix}*") if DIGEST.fullmatch(folder.name)]
        if len(digests) > 1:
            raise InputError(f"{len(digests)} checkpoints start with {prefix}; see `nightschool checkpoints`")
        return digests[0] if digests else prefix

    def make_private(self) -> bool:
        """Make the home accessible only to its owner (0700). Return whether others could enter it before.

        Raises InputError if chmod fails, or if the folder is not a home but holds files that others may need.
        """
        another = "use a separate one: NIGHTSCHOOL_HOME=/path/to/school"
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.root}: cannot be a home ({error.strerror}); {another}") from None
        if not self.root.stat().st_mode & 0o077:
            return False
        if any(self.root.iterdir()) and not any((self.root / part).exists() for part in PARTS):
            raise InputError(f"{self.root}: other users can enter this folder, and it holds other things; {another}")
        try:
            self.root.chmod(0o700)
        except OSError as error:
            raise InputError(
                f"{self.root}: other users can enter it, and chmod 700 failed ({error.strerror}); {another}"
            ) from None
        return True

    def _refuse_other_layout(self) -> None:
        try:
            written = self.layout_file.read_text(errors="replace")
        except OSError:  # no file yet, or an unusable home, which other checks report
            return
        if written.strip() not in (json.dumps({"version": layout}) for layout in (EARLIER, LAYOUT)):
            raise InputError(
                f"{self.root}: another version of Night school wrote this home (layout {written.strip()}, this one "
                f"knows {LAYOUT}): use that version, or name another home with NIGHTSCHOOL_HOME"
            )
