"""Where the benchmarks keep what they make: in `school`, the home that a night has by default."""

from pathlib import Path

from conf.storage.home import Home

SCHOOL = Path("school")


def make(folder: Path) -> Path:
    """The folder, made where it is not there; `school` around it stays its owner's alone, as a night wants its home.

    Raises InputError where `school` is something else.
    """
    if SCHOOL.resolve() in folder.resolve().parents:
        Home(SCHOOL.resolve()).make_private()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
