"""`nightschool evaluate`: run the exam on one checkpoint, or compare two checkpoints."""

import re
from pathlib import Path
from typing import Annotated

import typer

from conf.schema import NightConfig
from conf.sections.published_exams import with_exam
from conf.storage.home import Home
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json, version_named


def evaluate(
    checkpoint: Annotated[
        str,
        typer.Argument(
            help="a Hugging Face model folder, a hub id, or a version's number, alias (daytime, previous) or digest"
        ),
    ],
    against: Annotated[str | None, typer.Option(help="another checkpoint to compare with")] = None,
    benchmarks: Annotated[
        str | None, typer.Option(help="e.g. gsm8k,math (MATH-500); default: the configuration's exam")
    ] = None,
    problems: Annotated[int | None, typer.Option(min=1, help="at most this many problems per benchmark")] = None,
    rows: Annotated[
        Path | None, typer.Option(help="write each answer and its verdict here: .jsonl, .parquet or .csv")
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Run the exam on a checkpoint. Reuses cached results, and leaves the registry unchanged.

    evaluate school/checkpoints/3f2a…  --against HuggingFaceTB/SmolLM2-135M-Instruct --benchmarks gsm8k --rows rows.csv
    """
    home, settings = Home.here(), configuration(config, overrides)
    named = [name.strip() for name in benchmarks.split(",")] if benchmarks is not None else None
    if named is not None or problems is not None:
        settings = with_exam(settings, named or [part.name for part in settings.exam.parts], problems)
    if rows is not None:
        from flows.evaluation.exam import check_rows

        check_rows(rows, "--rows")
    from flows.evaluation.resolve_model import resolve_model
    from flows.orchestration.server import prefect_api
    from flows.run.preflight import check_exam

    checkpoint, against = _digest(checkpoint, home, settings), against and _digest(against, home, settings)
    for option, source in (("CHECKPOINT", checkpoint), ("--against", against)):
        if source is not None:
            resolve_model(source, option, settings.student, home)
    check_exam(settings)
    with prefect_api(home.root):
        from flows.evaluation.exam import exam, lines_of

        outcome = exam(checkpoint, settings, against, rows)
    print_json(outcome) if as_json else print(*lines_of(outcome), sep="\n")


def _digest(name: str, home: Home, config: NightConfig) -> str:
    """Return the digest of the version with this number or alias, or any other name as it is."""
    if not re.fullmatch(r"\d{1,3}|daytime|previous", name) or Path(name).exists():
        return name
    return version_named(name, home, config).digest
