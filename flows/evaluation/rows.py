"""The file with every answer of an evaluation: JSONL, Parquet or CSV."""

import os
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from conf.storage.home import InputError
from tasks.tables import EVALUATIONS, read_table

FORMATS = (".jsonl", ".parquet", ".csv")


def check_rows(file: Path, option: str) -> None:
    """Raise InputError where rows cannot be written to a file, before the exam is run for them."""
    if file.suffix not in FORMATS:
        raise InputError(f"{option}: {file}: its name must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if file.is_dir() or not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise InputError(f"{option}: {file}: not writable; name another file, or correct the permissions")


def write_rows(file: Path, exams: Mapping[str, Path]) -> None:
    """Write every answer of `evaluate` stages, by the models' names, to a file in the format of its suffix."""
    tables = [
        read_table(folder / f"{name}.parquet", EVALUATIONS).assign(checkpoint=model, sampled=name == "samples")
        for model, folder in exams.items()
        for name in ("evaluations", "samples")
    ]
    table = pd.concat([rows for rows in tables if len(rows)] or tables[:1], ignore_index=True)
    if file.suffix == ".parquet":
        table.to_parquet(file, index=False)
    elif file.suffix == ".csv":
        table.to_csv(file, index=False)
    else:
        table.to_json(file, orient="records", lines=True, force_ascii=False)
