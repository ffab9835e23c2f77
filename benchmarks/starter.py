"""The starter model as a folder, for the benchmarks that begin with it."""

from pathlib import Path

STARTER = Path("school/benchmarks/starter")


def starter(folder: Path = STARTER) -> Path:
    """The starter model's folder, written where it is not there yet."""
    if not (folder / "config.json").exists():
        from models.starter import write_starter  # torch and transformers

        write_starter(folder)
    return folder
