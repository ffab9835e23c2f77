"""`nightschool journal`: add, show, check and retract the journal's lines, and import data sets."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from conf.sections.benchmark import BenchmarkName
from conf.storage.home import Home, InputError
from conf.storage.journal import (
    Conversation,
    Correction,
    Entry,
    Feedback,
    Preference,
    Trace,
    Words,
    entry_of,
    read_object,
)
from conf.storage.journal import schema as json_schema
from conf.storage.journal_file import Written, append, read_file, retract
from conf.storage.locks import refuse_if_night_running
from flows.commands.options import AsJson, configuration, print_json
from tasks.report.text import plural

# \b keeps a paragraph's line breaks; lines have at most 76 columns
HELP = """The day's log: what you teach by day, and the night learns.

\b
One line of JSON per entry, one file per day, under NIGHTSCHOOL_HOME/journal:

\b
preference   the best of several answers    a lesson, or the reward model
correction   an answer as it should be      a lesson, and the reward model
feedback     a rated answer, -1 to 1        a lesson (KTO)
conversation several rated answers          a lesson (KTO)
words        a text to read                 a lesson (pretraining)
trace        a teacher's worked solution    a lesson, if it is correct

\b
A night teaches every line that its student has not learned, and puts
invalid ones aside with the reason. It never edits a file. An edited line
is a new lesson, and one that you remove is not taught again.

\b
docs/journal.md describes the format for programs that write it.
"""

journal_app = typer.Typer(no_args_is_help=True, help=HELP)


@journal_app.command()
def add(as_json: AsJson = False) -> None:
    """Add the JSON lines on standard input to today's file if all of them are valid (docs/journal.md).

    echo '{"kind": "words", "text": "Owls hunt at night."}' | nightschool journal add

    You may leave out the keys `version` and `at` (default: now). A pick's `policy` may be a digest's first digits.
    """
    home = Home.here()
    entries = list(_from_input(home))
    home.make_private()
    file = append(home.journal, entries).file
    _print({"file": str(file), "added": len(entries)}, as_json, f"{file}: {plural(len(entries), 'line')} added")


@journal_app.command()
def check(file: Annotated[Path, typer.Argument(help="a journal file (JSONL)")], as_json: AsJson = False) -> None:
    """Read a journal file as a night would, and list the invalid lines. Exits with 1 if there are any."""
    if not file.is_file():
        raise InputError(f"{file}: no such file; journals are in {Home.here().journal}")
    good, bad = read_file(file)
    result = {"file": str(file), "good": len(good), "bad": bad}
    _print(result, as_json, f"{file}: {plural(len(good), 'good line')}, {len(bad)} bad", *map(_bad, bad))
    if bad:
        raise typer.Exit(1)


@journal_app.command()
def show(
    date: Annotated[str | None, typer.Argument(help="the day, e.g. 2026-11-20; default: the newest file")] = None,
    as_json: AsJson = False,
) -> None:
    """List a day's valid lines, and the lines that a night would refuse."""
    file = _file_of(date)
    good, bad = read_file(file)
    lines = [{"line": number} | entry.model_dump(mode="json", exclude_none=True) for number, entry in good]
    listed = [
        f"{number:>5}  {datetime.fromisoformat(entry.at):%H:%M}  {entry.kind:10}  {_shown(entry)}"
        for number, entry in good
    ]
    _print({"file": str(file), "lines": lines, "bad": bad}, as_json, str(file), *listed, *map(_bad, bad))


@journal_app.command("retract")
def retract_(
    date: Annotated[str, typer.Argument(help="the day, e.g. 2026-11-20")],
    line: Annotated[int, typer.Argument(help="the line's number, as `journal show` prints it", min=1)],
) -> None:
    """Take a line back: it becomes blank, no night teaches it, and the other lines keep their numbers.

    Models that have learned the line do not forget it; `nightschool rollback` can return to a model without it.
    """
    from tasks.journal.read import learned_by

    home, file = Home.here(), _file_of(date, "retract")
    refuse_if_night_running(home.root)
    lines = file.read_bytes().split(b"\n")
    if line > len(lines) or not lines[line - 1].strip():
        raise InputError(f"retract: {file} has no line {line}; `nightschool journal show {date}` lists its lines")
    count = learned_by(home, file, line)
    retract(Written(file, line))
    learned = f"; {plural(count, 'checkpoint')} learned it" if count else ""
    print(f"{file}: line {line} is taken back{learned}")


@journal_app.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(help="a JSONL, JSON or Parquet file, a folder of them, or a hub id (owner/name)")
    ],
    split: Annotated[str, typer.Option(help="the split of a folder or of the hub's data set")] = "train",
    subset: Annotated[str | None, typer.Option(help="the data set's configuration, if it has several")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="the most rows to read")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="benchmark that worked solutions belong to if a row names none, e.g. gsm8k")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of a data set to today's file. Importing the same data set again adds only its new rows.

    The columns decide a line's kind. Picks: chosen + rejected (with or without prompt), OpenAI's preferred_output, or
    instruction + completions with scores (UltraFeedback; the best one is picked). Feedback: prompt + completion +
    label. Worked solutions: messages or conversations, or a prompt with a completion, response or solution.
    """
    from tasks.journal.import_dataset import import_rows

    home = Home.here()
    _check_benchmark(benchmark)
    home.make_private()
    done = import_rows(home.journal, source, split, subset, limit, benchmark)
    refused = [f"  row {row['row']}: {_printable(row['reason'])}" for row in done["refused"]]
    added = plural(done["added"], "line")
    line = f"{done['file']}: {added} added, {done['known']} there already, {len(refused)} refused"
    _print(done, as_json, line, *refused)


def _check_benchmark(name: str | None) -> None:
    """Raise InputError unless the name, if any, is that of a benchmark with which a night can verify solutions."""
    if name is None or name in get_args(BenchmarkName):
        return
    from rewards.data.benchmarks import configured

    own = [configured(entry).name for entry in configuration(None, []).benchmarks if ":" in entry.name]
    if name not in own:
        raise InputError(f"--benchmark: no benchmark {name!r}; known are {', '.join([*get_args(BenchmarkName), *own])}")


@journal_app.command()
def schema() -> None:
    """Print the JSON Schema of a journal line, for programs that write journals (docs/journal.schema.json)."""
    print(json_schema(), end="")


def _from_input(home: Home) -> Iterator[Entry]:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("add: pipe JSON lines in; `nightschool journal add --help` has an example")
    for number, line in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            fields = read_object(line)
            if isinstance(policy := fields.get("policy"), str):
                fields["policy"] = home.full_digest(policy)
            yield entry_of(fields)
        except ValueError as error:
            raise InputError(f"add: line {number}: {error}; nothing was written") from None


def _file_of(date: str | None, command: str = "show") -> Path:
    journal = Home.here().journal
    if date is None:
        files = sorted(journal.glob("*.jsonl"))
        if not files:
            raise InputError(f"{journal}: no journal yet; `nightschool journal add --help` shows how to start one")
        return files[-1]
    try:
        day = datetime.fromisoformat(date).date()
    except ValueError:
        raise InputError(f"{command}: {date} is not a date; write it as 2026-11-20") from None
    file = journal / f"{day}.jsonl"  # perhaps tomorrow's: a line may come from another time zone
    if not file.is_file():
        raise InputError(f"{journal}: no journal for {day}")
    return file


def _shown(entry: Entry) -> str:
    if isinstance(entry, Words):
        return _printable(entry.text, 100)
    asked = _printable(entry.messages[-1].content, 50)
    match entry:
        case Preference():
            picked = f"picked {entry.chosen + 1} of {len(entry.responses)}"
            return f"{asked} → {picked}: {_printable(entry.responses[entry.chosen], 50)}"
        case Correction():
            return f"{asked} → {_printable(entry.response, 30)} ⇒ {_printable(entry.correction, 30)}"
        case Feedback():
            return f"{asked} → {entry.value:+g}: {_printable(entry.response, 50)}"
        case Conversation():
            rewards = ", ".join("–" if value is None else f"{value:+g}" for value in entry.rewards or ()) or "not rated"
            turns = sum(message.role == "assistant" for message in entry.messages)
            return f"{_printable(entry.messages[0].content, 50)} → {turns} answers: {rewards}"
        case Trace():
            return f"{asked} → {_printable(entry.teacher, 20)}: {_printable(entry.response, 50)}"


def _bad(line: dict[str, Any]) -> str:
    return f"  line {line['line']}: {_printable(line['reason'])}"


def _printable(text: str, length: int = 300) -> str:
    """Return the text on one line, cut to `length`, without control characters."""
    text = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _print(result: dict[str, Any], as_json: bool, *lines: str) -> None:
    if as_json:
        print_json(result)
    else:
        print(*lines, sep="\n")
