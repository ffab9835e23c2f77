"""`nightschool journal`: add lines to the day's log, show and check them, and import data sets."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from conf.sections.hours import clocks_in
from conf.storage.home import Home, InputError
from conf.storage.journal import (
    KINDS,
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
from conf.storage.locks import refuse_second
from flows.commands.options import AsJson, print_json
from flows.run.dates import checked_date

# \b keeps the line breaks of a paragraph; at most 76 columns
HELP = """The day's log: what you teach by day, and the night learns.

\b
One line of JSON per entry, one file per day, under NIGHTSCHOOL_HOME/journal:

\b
preference   the best of several answers    the reward model, or a lesson
correction   an answer as it should be      a lesson, and the reward model
feedback     a rated answer, -1 to 1        a lesson (KTO)
conversation several rated answers          a lesson (KTO); added as JSON
words        a text to read                 a lesson (pretraining)
trace        a teacher's worked solution    a lesson, if it is correct

\b
A night takes every line that no earlier night has taken, and puts invalid
ones aside with the reason. It never edits a file. A lesson is repeated
every night until the champion has learnt it.

\b
nightschool journal add words --text "Owls hunt at night."
nightschool journal add --help             how to add each kind
nightschool journal import FILE_OR_HUB_ID  preference pairs, rankings, chats
nightschool journal show                   the newest day's lines
nightschool journal retract 2026-11-20 3   take a line back
nightschool journal check FILE             the lines a night would refuse

\b
docs/journal.md describes the format for programs that write it.
"""

journal_app = typer.Typer(no_args_is_help=True, help=HELP)
OPTIONS = {"messages": "--prompt", "responses": "--response"}  # of the fields that are named otherwise
Kind = Literal["preference", "correction", "feedback", "words", "trace"]


@journal_app.command()
def add(
    kind: Annotated[
        Kind | None, typer.Argument(help="kind of line; without it, JSON lines are read from standard input")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="the user's question (all kinds except words)")] = None,
    system: Annotated[str | None, typer.Option(help="the system text before it, if any")] = None,
    response: Annotated[
        list[str] | None, typer.Option(help="the answer; for a preference, repeat it for each answer shown")
    ] = None,
    chosen: Annotated[int | None, typer.Option(help="preference: index of the answer picked; 0 is the first")] = None,
    policy: Annotated[
        str | None, typer.Option(help="preference: digest of the checkpoint that answered, or its beginning")
    ] = None,
    correction: Annotated[str | None, typer.Option(help="correction: the answer as it should be")] = None,
    value: Annotated[float | None, typer.Option(help="feedback: from -1 (bad) to 1 (good)")] = None,
    text: Annotated[str | None, typer.Option(help="words: the text to read")] = None,
    teacher: Annotated[str | None, typer.Option(help="trace: who wrote the answer")] = None,
    benchmark: Annotated[str | None, typer.Option(help="trace: the benchmark that can check it, e.g. gsm8k")] = None,
    truth: Annotated[str | None, typer.Option(help="trace: the correct answer")] = None,
    as_json: AsJson = False,
) -> None:
    """Add lines to today's file: one from options, or all of standard input if every line is valid.

    nightschool journal add correction --prompt "Capital of Australia?" --response Sydney --correction Canberra

    nightschool journal add preference --prompt "Rhyme on owl?" --response howl --response bird --chosen 0 --policy 3f2a

    echo '{"kind": "words", "text": "Owls hunt at night."}' | nightschool journal add

    On standard input the keys `version` and `at` (default: now) may be left out.
    """
    home = Home.here()
    policy = policy and home.full_digest(policy)
    given = {
        "messages": None if prompt is None else _messages(system, prompt),
        "responses" if kind == "preference" else "response": _answers(kind, response) if response else None,
        **{"chosen": chosen, "policy": policy, "correction": correction, "value": value},
        **{"text": text, "teacher": teacher, "benchmark": benchmark, "truth": truth},
    }
    given = {name: item for name, item in given.items() if item is not None}
    if system is not None and prompt is None:
        raise InputError("add: --system needs a --prompt")
    if kind is None and given:
        raise InputError(f"add: name the kind of line first: {', '.join(get_args(Kind))}")
    entries = [_from_options(kind, given)] if kind else list(_from_input())
    home.make_private()
    file = append(home.journal, entries)
    _print({"file": str(file), "added": len(entries)}, as_json, f"{file}: {_counted(len(entries), 'line')} added")


@journal_app.command()
def check(file: Annotated[Path, typer.Argument(help="a journal file (JSONL)")], as_json: AsJson = False) -> None:
    """Read a journal file as a night would, and list the invalid lines. Exits with 1 if there are any."""
    if not file.is_file():
        raise InputError(f"{file}: no such file; journals are in {Home.here().journal}")
    good, bad = read_file(file)
    result = {"file": str(file), "good": len(good), "bad": bad}
    _print(result, as_json, f"{file}: {_counted(len(good), 'good line')}, {len(bad)} bad", *map(_bad, bad))
    if bad:
        raise typer.Exit(1)


@journal_app.command()
def show(
    date: Annotated[str | None, typer.Argument(help="the day, e.g. 2026-11-20; default: the newest file")] = None,
    as_json: AsJson = False,
) -> None:
    """List the lines of a day, and those that a night would refuse."""
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
    """Take a line back that no night has taken: it becomes blank, and the others keep their places."""
    from tasks.journal.spans import night_of

    home, file = Home.here(), _file_of(date)
    refuse_second(home.root)
    lines = [line + b"\n" for line in file.read_bytes().split(b"\n")]
    if line > len(lines) or not lines[line - 1].strip():
        raise InputError(f"retract: {file} has no line {line}; `nightschool journal show {date}` lists its lines")
    start = sum(map(len, lines[: line - 1]))
    written = Written(file, start, start + len(lines[line - 1]) - 1)
    if night := night_of(written, home.nights):
        raise InputError(f"retract: the night of {night} took this line; `nightschool rollback` undoes nights")
    retract(written)
    print(f"{file}: line {line} is taken back")


@journal_app.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(help="a JSONL, JSON or Parquet file, a folder of them, or a hub id (owner/name)")
    ],
    split: Annotated[str, typer.Option(help="the split of a folder or of the hub's data set")] = "train",
    subset: Annotated[str | None, typer.Option(help="its configuration, if it has several")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="the most rows to read")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="worked solutions: whose problems, if a row does not say, e.g. gsm8k")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add the rows of a data set to today's file. Importing it again adds only new rows.

    The columns tell the kind: chosen + rejected (with or without prompt), and OpenAI's preferred_output, are picks;
    instruction + completions with scores (UltraFeedback) a pick of the best; prompt + completion + label feedback;
    messages or conversations, and a prompt with a completion, response or solution, worked solutions.
    """
    from tasks.journal.import_dataset import import_rows

    home = Home.here()
    home.make_private()
    done = import_rows(home.journal, source, split, subset, limit, benchmark)
    line = f"{done.file}: {_counted(done.added, 'line')} added, {done.known} there already, {len(done.refused)} refused"
    result = {"file": str(done.file), "added": done.added, "known": done.known, "refused": done.refused}
    _print(result, as_json, line, *(f"  row {row['row']}: {_printable(row['reason'])}" for row in done.refused))


@journal_app.command()
def schema() -> None:
    """Print the JSON Schema of a line, for programs that write journals (docs/journal.schema.json)."""
    print(json_schema(), end="")


def _messages(system: str | None, prompt: str) -> list[dict[str, str]]:
    asked = {"role": "user", "content": prompt}
    return [asked] if system is None else [{"role": "system", "content": system}, asked]


def _answers(kind: str | None, response: list[str]) -> list[str] | str:
    if kind == "preference":
        return response
    if len(response) > 1:
        raise InputError(f"add: --response is given {len(response)} times; only a preference has several answers")
    return response[0]


def _from_options(kind: str, given: dict[str, Any]) -> Entry:
    fields = KINDS[kind].model_fields
    if unused := given.keys() - fields.keys():
        raise InputError(f"add: {kind} has no {', '.join(sorted(unused))}; see `nightschool journal add --help`")
    for name, field in fields.items():
        if field.is_required() and name not in ("version", "at", "kind", *given):
            hint = " (a digest from `nightschool checkpoints`)" if name == "policy" else ""
            raise InputError(f"add: {OPTIONS.get(name, f'--{name}')} is missing{hint}")
    try:
        return entry_of({"kind": kind, **given})
    except ValueError as error:
        raise InputError(f"add: {error}") from None


def _from_input() -> Iterator[Entry]:
    if sys.stdin.isatty():
        raise InputError(f"add: name the kind of line ({', '.join(get_args(Kind))}), or pipe JSON lines in")
    for number, line in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield entry_of(read_object(line))
        except ValueError as error:
            raise InputError(f"add: line {number}: {error}; nothing was written") from None


def _file_of(date: str | None) -> Path:
    journal = Home.here().journal
    if date is None:
        files = sorted(journal.glob("*.jsonl"))
        if not files:
            raise InputError(f"{journal}: no journal yet; `nightschool journal add --help` shows how to start one")
        return files[-1]
    file = journal / f"{checked_date(date, 'show', clocks_in(None))}.jsonl"
    if not file.is_file():
        raise InputError(f"{journal}: no journal for {file.stem}")
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
            rewards = ", ".join("–" if reward is None else f"{reward:+g}" for reward in entry.rewards)
            return f"{_printable(entry.messages[0].content, 50)} → {len(entry.rewards)} answers: {rewards}"
        case Trace():
            return f"{asked} → {_printable(entry.teacher, 20)}: {_printable(entry.response, 50)}"


def _bad(line: dict[str, Any]) -> str:
    return f"  line {line['line']}: {_printable(line['reason'])}"


def _printable(text: str, length: int = 300) -> str:
    """Return the text on one line, cut to `length`, without control characters."""
    text = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _print(result: dict[str, Any], as_json: bool, *lines: str) -> None:
    if as_json:
        print_json(result)
    else:
        print(*lines, sep="\n")
