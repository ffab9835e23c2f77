"""The folder of the benchmarks' results: `school`, a night's default home."""

from pathlib import Path

from conf.storage.home import Home

SCHOOL = Path("school")


def make(folder: Path) -> Path:
    """Create a folder and return it. If it is in `school`, that becomes private, as a night's home must be.

    Raises InputError if `school` is not a folder.
    """
    private = SCHOOL.resolve() in folder.resolve().parents
    if private:
        Home(SCHOOL.resolve()).make_private()
    folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    return folder
