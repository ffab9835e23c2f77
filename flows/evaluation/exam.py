"""An exam outside of any night: one checkpoint, alone or against another, on the parts of a configuration."""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import flow
from prefect.runtime import deployment

from conf.load import STARTER, load_night
from conf.schema import NightConfig
from conf.storage.home import Home
from flows.commands.evaluate import check_rows
from flows.evaluation.models import Sitter, engine_for, find_sitter
from flows.run.preflight import check_exam
from models.engine.environment import engine_environment
from tasks.evaluation.evaluate import evaluate
from tasks.evaluation.metrics import exam_figures
from tasks.evaluation.statistics import compare, probability, signed
from tasks.monitoring.prefect_artifacts import show_text
from tasks.stage import Artifact
from tasks.tables import EVALUATIONS, read_table
from tasks.workers import Worker

Outcome = dict[str, dict[str, Any]]


@flow(name="exam", flow_run_name="exam of {checkpoint}", description="One checkpoint sits the exam.")
def exam(
    checkpoint: str, config: NightConfig | None = None, against: str | None = None, rows: Path | None = None
) -> Outcome:
    """By part of the exam: accuracy with its 95 % interval and n, and what `ExamFigures` has besides.

    `checkpoint`, `against`: a folder, a hub id, or a digest under the home. With `against` each part has the other's
    figures too (`against`) and the `comparison`, which holds `checkpoint` minus `against`. `rows`: a file to write
    every answer into. Raises InputError for a model, an exam or a file that cannot be.
    """
    home, config = Home.here(), config or load_night(STARTER)
    if deployment.id is not None:  # the command has looked before it started a server
        check_exam(config)
        if rows is not None:
            check_rows(rows, "rows")
    home.make_private()
    sitters = [find_sitter(source, "checkpoint", config.student, home) for source in (checkpoint, against) if source]
    with tempfile.TemporaryDirectory() as folder:
        sat = [_sit(sitter, config, home, Path(folder) / str(place)) for place, sitter in enumerate(sitters)]
        tables = [read_table(one.folder / "evaluations.parquet", EVALUATIONS) for one in sat]
        figures = [_figures(one) for one in sat]
        if rows is not None:
            write_rows(rows, {sitter.named: one.folder for sitter, one in zip(sitters, sat, strict=True)})
    found = figures[0]
    if against:
        for part, own in found.items():
            own |= {"against": figures[1][part], "comparison": _compared(part, tables[1], tables[0], config)}
    show_text("exam", "\n".join(f"    {line}" for line in told(found)), f"The exam of {checkpoint}")
    return found


def _sit(sitter: Sitter, config: NightConfig, home: Home, folder: Path) -> Artifact:
    """An engine of its own for each: two models may be of different shapes."""
    folder.mkdir()
    named = sitter.under_its_digest(folder)
    engine = Worker("engine", engine_environment(config.engine.kv_cache_gb), folder / "engine.log")
    try:
        return evaluate(
            folder,
            "evaluate",
            parts=config.exam.parts,
            checkpoint=named,
            student=sitter.student,
            config=engine_for(config.sampler, named),
            sandbox=config.sandbox,
            max_completion_tokens=config.exam.max_completion_tokens,
            engine=engine,
            exams=home.exams,
        )
    finally:
        engine.close()


def write_rows(file: Path, sat: Mapping[str, Path]) -> None:
    """Writes every answer of an exam, the greedy ones and those sampled besides (`temperature` 0, or not), into a file.

    `sat`: the folders of the stage `evaluate`, by the name of who sat. The file's ending says in which form.
    """
    tables = [
        read_table(folder / f"{name}.parquet", EVALUATIONS).assign(checkpoint=who, sampled=name == "samples")
        for who, folder in sat.items()
        for name in ("evaluations", "samples")
    ]
    table = pd.concat([one for one in tables if len(one)] or tables[:1], ignore_index=True)
    if file.suffix == ".parquet":
        table.to_parquet(file, index=False)
    elif file.suffix == ".csv":
        table.to_csv(file, index=False)
    else:
        table.to_json(file, orient="records", lines=True, force_ascii=False)


def told(found: Outcome) -> list[str]:
    """The outcome for people: a line a part, and one more for the comparison."""
    lines = []
    for part, own in found.items():
        rates = [
            f"{name} {own[key]:.1%}"
            for name, key in (("answers found", "format_rate"), ("cut off", "truncation_rate"))
            if own[key] is not None
        ]
        passes = [f"pass@{k} {share:.3f}" for k, share in own["pass_at"].items()]
        tail = ", ".join([*rates, f"{own['mean_tokens']:.0f} tokens", *passes])
        lines.append(f"{part:24} {_interval(own)}  {tail}")
        if "comparison" in own:
            other, pair = own["against"], own["comparison"]
            interval = f"[{signed(pair['low'], 3)}, {signed(pair['high'], 3)}]"
            flips = f"{pair['gained']} gained, {pair['lost']} lost, {probability(pair['p_value'])}"
            lines.append(f"{'  against':24} {_interval(other)}")
            lines.append(f"{'  difference':24} {signed(pair['difference'], 3)} {interval}  {flips}")
    return lines


def _interval(own: Mapping[str, Any]) -> str:
    return f"{own['accuracy']:.3f}  [{own['low']:.3f}, {own['high']:.3f}]  n = {own['n']}"


def _figures(sat: Artifact) -> Outcome:
    """As JSON takes them, with the accuracy's own interval at the top."""
    found = {part: dataclasses.asdict(own) for part, own in exam_figures(sat.folder).items()}
    return {part: own.pop("accuracy") | own for part, own in found.items()}


def _compared(part: str, before: pd.DataFrame, after: pd.DataFrame, config: NightConfig) -> dict[str, Any]:
    samples, alpha = config.exam.bootstrap_samples, config.exam.alpha
    pair: list[pd.DataFrame] = [table[table.benchmark == part] for table in (before, after)]
    return dataclasses.asdict(compare(part, pair[0], pair[1], samples=samples, seed=config.seed, alpha=alpha))
