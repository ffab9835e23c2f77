"""Evaluates a checkpoint on a configuration's exam, alone or in comparison with another one, outside any night."""

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import flow
from prefect.runtime import deployment

from conf.load import load_night, own_file
from conf.schema import NightConfig
from conf.storage.home import Home, InputError
from flows.evaluation.resolve_model import EvaluatedModel, player_of, resolve_model
from flows.run.preflight import check_exam
from tasks.evaluation.comparison import compare
from tasks.evaluation.evaluate import evaluate
from tasks.evaluation.metrics import exam_figures
from tasks.evaluation.statistics import probability, signed
from tasks.monitoring.notify import show_text
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table

FORMATS = (".jsonl", ".parquet", ".csv")  # for the file with every answer
Figures = dict[str, dict[str, Any]]


@flow(name="exam", flow_run_name="exam of {checkpoint}", description="Evaluate one checkpoint.")
def exam(
    checkpoint: str, config: NightConfig | None = None, against: str | None = None, rows: Path | None = None
) -> Figures:
    """Evaluate a checkpoint. Returns each part's accuracy, 95 % interval and n, and further metrics (see `figures`
    in tasks/evaluation/metrics.py).

    `checkpoint`, `against`: a folder, a hub id, or a digest under the home. With `against`, each part also has that
    model's metrics (`against`) and the `comparison` (`checkpoint` minus `against`). `config`: by default, that of the
    home (see `own_file`). `rows`: the file to write every answer to. Raises InputError if a model, the exam or the file
    cannot be used.
    """
    home = Home.here()
    config = config or load_night(own_file(home))
    if deployment.id is not None:  # otherwise, the CLI has checked this before it started a server
        check_exam(config)
        if rows is not None:
            check_rows(rows, "rows")
    home.make_private()
    named = {"checkpoint": checkpoint, "against": against}
    models = [resolve_model(source, name, config.student, home) for name, source in named.items() if source]
    with tempfile.TemporaryDirectory() as folder:
        exams = [_evaluate(model, config, home, Path(folder) / str(index)) for index, model in enumerate(models)]
        tables = [read_table(artifact.folder / "evaluations.parquet", EVALUATIONS) for artifact in exams]
        figures = [exam_figures(artifact.folder) for artifact in exams]
        if rows is not None:
            folders = {model.source: artifact.folder for model, artifact in zip(models, exams, strict=True)}
            write_rows(rows, folders)
    outcome = figures[0]
    if against:
        for part in outcome:
            after, before = tables
            comparison = dataclasses.asdict(compare(part, before, after, seed=config.seed))
            outcome[part] |= {"against": figures[1][part], "comparison": comparison}
    show_text("exam", "\n".join(f"    {line}" for line in lines_of(outcome)), f"The exam of {checkpoint}")
    return outcome


def _evaluate(model: EvaluatedModel, config: NightConfig, home: Home, folder: Path) -> Artifact:
    folder.mkdir()
    with player_of(model, config, folder) as player:
        return evaluate(
            folder,
            "evaluate",
            parts=config.exam.parts,
            player=player,
            sandbox=config.sandbox,
            exams=home.exams,
            sampled=True,
        )


def lines_of(outcome: Figures) -> list[str]:
    """Format the outcome as lines of text: one per part, and two more for each comparison."""
    lines = []
    for part, figures in outcome.items():
        rates = [
            f"{name} {figures[key]:.1%}"
            for name, key in (("answers found", "format_rate"), ("cut off", "truncation_rate"))
            if figures[key] is not None
        ]
        passes = [f"pass@{k} {share:.3f}" for k, share in figures["pass_at"].items()]
        tail = ", ".join([*rates, f"{figures['mean_tokens']:.0f} tokens", *passes])
        lines.append(f"{part:24} {_interval(figures)}  {tail}")
        if pair := figures.get("comparison"):
            interval = f"[{signed(pair['low'], 3)}, {signed(pair['high'], 3)}]"
            flips = f"{pair['gained']} gained, {pair['lost']} lost, {probability(pair['p_value'])}"
            lines.append(f"{'  against':24} {_interval(figures['against'])}")
            lines.append(f"{'  difference':24} {signed(pair['difference'], 3)} {interval}  {flips}")
    return lines


def _interval(figures: Mapping[str, Any]) -> str:
    return f"{figures['accuracy']:.3f}  [{figures['low']:.3f}, {figures['high']:.3f}]  n = {figures['n']}"


def check_rows(file: Path, option: str) -> None:
    """Raise InputError if answers cannot be written to `file`. The error names the setting `option`."""
    if file.suffix not in FORMATS:
        raise InputError(f"{option}: {file}: its name must end with {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if file.is_dir() or not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise InputError(f"{option}: {file}: not writable; name another file, or correct the permissions")


def write_rows(file: Path, exams: Mapping[str, Path]) -> None:
    """Write all answers to a file, whose suffix sets the format. `exams`: each model's `evaluate` folder, by name."""
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
