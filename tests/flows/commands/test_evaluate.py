"""`nightschool evaluate`: a wrong input is one line, before an engine or a server starts."""

from pathlib import Path

import pytest

from conf.storage.home import Home
from tests.flows.commands.command import Run, refused
from tests.tasks.doubles.student import write_student


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/nobody"], "CHECKPOINT: {tmp}/nobody: there is no such folder; name one, or a hub id (owner/name)"),
        (["{tmp}/mine", "--against", "{tmp}/empty"], "--against: {tmp}/empty: no config.json"),
        (["daytime"], "there is no version daytime; `nightschool checkpoints` lists them"),
        (["{tmp}/mine", "--against", "new:5M"], "--against: there is no "),
        (["{tmp}/torn"], "CHECKPOINT: {tmp}/torn: config.json cannot be loaded (OSError: It looks like the config"),
        (["{tmp}/mine", "--benchmarks", "gms8k"], "--benchmarks: unknown benchmark 'gms8k'; did you mean 'gsm8k'?"),
        (["{tmp}/mine", "--benchmarks", "gsm8k,"], "--benchmarks: unknown benchmark ''; known are arithmetic"),
        (["{tmp}/mine", "--benchmarks", "ants"], "--benchmarks: ants has no published exam: name a configuration"),
        (["{tmp}/mine", "--rows", "rows.xlsx"], "--rows: rows.xlsx: its name must end with .jsonl, .parquet or .csv"),
        (["{tmp}/mine", "--rows", "no/rows.csv"], "--rows: no/rows.csv: not writable; name another file"),
        (["{tmp}/mine", "--rows", "a.csv"], "--rows: a.csv: not writable"),
        (["{tmp}/mine", "--set", "exam.target={benchmark: gsm8k, source: {tmp}}"], "{tmp}/test.jsonl: no such file"),
    ],
)
def test_an_exam_that_cannot_be_run(run: Run, home: Home, tmp_path: Path, arguments: list[str], message: str) -> None:
    write_student(tmp_path / "mine")
    for folder in ("empty", "a.csv"):
        (tmp_path / folder).mkdir()
    (write_student(tmp_path / "torn") / "config.json").write_text("{broken")
    here = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    assert refused(run("evaluate", *here)).startswith(message.replace("{tmp}", str(tmp_path)))
    assert not home.root.exists()
