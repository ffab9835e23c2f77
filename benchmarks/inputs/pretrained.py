"""Students trained from scratch, each made once."""

from pathlib import Path

from benchmarks.inputs.school import SCHOOL, make
from benchmarks.machine.child import nightschool
from rewards.data.dataset_rows import DATA_VARIABLE

TOKENS = 1_000_000  # of generated texts alone, the same for all sizes


def pretrained(size: str, seed: int = 1) -> Path:
    """Return the folder of a student of a size of `nightschool pretrain`. The first call trains it, or goes on."""
    home = make(SCHOOL / "benchmarks" / "pretrained" / f"{size}-{seed}").resolve()
    nightschool(home, "pretrain", size, "--tokens", str(TOKENS), "--seed", str(seed), **{DATA_VARIABLE: ""})
    return home / "students" / size
