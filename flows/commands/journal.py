"""`nightschool journal`: the day's log, written, checked, shown, and filled with what is there already."""

import datetime
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from conf.storage.home import Home, InputError
from conf.storage.journal import KINDS, Correction, Entry, Feedback, Preference, Trace, Words, entry_of
from conf.storage.journal import schema as json_schema
from conf.storage.journal_file import append, read_file
from flows.commands.options import AsJson

# \b keeps a paragraph's lines as they are: 76 columns at most
HELP = """The day's log: what you teach by day, and the night learns from.

\b
It is one line of JSON each, in a file a day under NIGHTSCHOOL_HOME/journal:

\b
preference   the best of several answers    the reward model, or a lesson
correction   an answer as it should be      a lesson, and the reward model
feedback     praise or scolding, -1 to 1    a lesson (KTO)
words        a text to read                 a lesson (pretraining)
trace        a teacher's worked solution    a lesson, if it is right

\b
A night takes every line that no night has taken, also those of days without
one, and puts wrong ones aside with the reason. It never edits a file. A
lesson comes again every night until the model that serves by day has it.

\b
nightschool journal add words --text "Owls hunt at night."
nightschool journal add --help             how to write each kind
nightschool journal import FILE_OR_HUB_ID  preference pairs, rankings, chats
nightschool journal show                   what the newest day has taught
nightschool journal check FILE             what a night would refuse, and why

\b
docs/journal.md has the format, for programs that write it.
"""

journal_app = typer.Typer(no_args_is_help=True, help=HELP)
Kind = Literal["preference", "correction", "feedback", "words", "trace"]


@journal_app.command()
def add(
    kind: Annotated[Kind | None, typer.Argument(help="of the line; left out: lines of JSON on standard input")] = None,
    prompt: Annotated[str | None, typer.Option(help="what the user asked (all kinds but words)")] = None,
    system: Annotated[str | None, typer.Option(help="the system text before it, if there was one")] = None,
    response: Annotated[list[str] | None, typer.Option(help="the answer; of a preference each answer shown")] = None,
    chosen: Annotated[int | None, typer.Option(help="preference: place of the answer picked; 0 is the first")] = None,
    policy: Annotated[str | None, typer.Option(help="preference: digest of the checkpoint that answered")] = None,
    correction: Annotated[str | None, typer.Option(help="correction: the answer as it should be")] = None,
    value: Annotated[float | None, typer.Option(help="feedback: from -1 (scolds) to 1 (praises)")] = None,
    text: Annotated[str | None, typer.Option(help="words: the text to read")] = None,
    teacher: Annotated[str | None, typer.Option(help="trace: who wrote the answer")] = None,
    benchmark: Annotated[str | None, typer.Option(help="trace: whose verifier can judge it, e.g. gsm8k")] = None,
    truth: Annotated[str | None, typer.Option(help="trace: the true answer")] = None,
    as_json: AsJson = False,
) -> None:
    """Adds lines to today's file: one from options, or all of standard input, each checked before any is written.

    nightschool journal add correction --prompt "Capital of Australia?" --response Sydney --correction Canberra

    nightschool journal add preference --prompt "Rhyme on owl?" --response howl --response bird --chosen 0 --policy 3f2a

    echo '{"kind": "words", "text": "Owls hunt at night."}' | nightschool journal add

    The keys `version` and `at` (now) may be left out on standard input.
    """
    given = {
        **({"messages": _messages(system, prompt)} if prompt is not None or system is not None else {}),
        **({"responses" if kind == "preference" else "response": _answers(kind, response)} if response else {}),
        **{"chosen": chosen, "policy": policy, "correction": correction, "value": value},
        **{"text": text, "teacher": teacher, "benchmark": benchmark, "truth": truth},
    }
    given = {name: item for name, item in given.items() if item is not None}
    if kind is None and given:
        raise InputError(f"add: name the kind of the line first: {', '.join(KINDS)}")
    entries = [_from_options(kind, given)] if kind else list(_from_input())
    home = Home.here()
    home.own()
    file = append(home.journal, entries)
    _say({"file": str(file), "added": len(entries)}, as_json, f"{file}: {_counted(len(entries), 'line')} added")


@journal_app.command()
def check(file: Annotated[Path, typer.Argument(help="a journal file (JSONL)")], as_json: AsJson = False) -> None:
    """Reads a journal file as the freeze would, and names the lines that are wrong."""
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; journals lie under {Home.here().journal}")
    good, bad = read_file(file)
    found = {"file": str(file), "good": len(good), "bad": bad}
    _say(found, as_json, f"{file}: {len(good)} good lines, {len(bad)} bad", *map(_bad, bad))


@journal_app.command()
def show(
    date: Annotated[str | None, typer.Argument(help="the day, e.g. 2026-11-20; left out: the newest file")] = None,
    as_json: AsJson = False,
) -> None:
    """Lists what a day has taught so far, a line each, and the lines that the freeze would not take."""
    file = _file_of(date)
    good, bad = read_file(file)
    lines = [{"line": number} | entry.model_dump(mode="json", exclude_none=True) for number, entry in good]
    listed = [f"{number:>5}  {_time(entry)}  {entry.kind:10}  {_shown(entry)}" for number, entry in good]
    _say({"file": str(file), "lines": lines, "bad": bad}, as_json, str(file), *listed, *map(_bad, bad))


@journal_app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="a JSONL or Parquet file, a folder of such, or a hub id (owner/name)")],
    split: Annotated[str, typer.Option(help="which part of a folder or of the hub's data set")] = "train",
    subset: Annotated[str | None, typer.Option(help="which configuration of it, where it has several")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="read at most so many rows")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="worked solutions: whose problems, where a row does not say, e.g. gsm8k")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Adds the rows of a data set to today's file, once: to import it again adds only what is new.

    The columns say what they are: chosen + rejected (with or without prompt), also OpenAI's preferred_output: picks;
    instruction + completions with scores (UltraFeedback): a pick of the best; prompt + completion + label: praise
    and scolding; messages or conversations, prompt + completion or response: worked solutions.
    """
    from tasks.journal.import_dataset import import_rows

    home = Home.here()
    home.own()
    done = import_rows(home.journal, source, split, subset, limit, benchmark)
    told = f"{done.file}: {_counted(done.added, 'line')} added, {done.known} there already, {len(done.refused)} refused"
    found = {"file": str(done.file), "added": done.added, "known": done.known, "refused": done.refused}
    _say(found, as_json, told, *(f"  row {row['row']}: {_printable(row['reason'])}" for row in done.refused))


@journal_app.command()
def schema() -> None:
    """Prints the JSON Schema of a line, for programs that write journals (docs/journal.schema.json)."""
    print(json_schema(), end="")


def _messages(system: str | None, prompt: str | None) -> list[dict[str, str]]:
    turns = {"system": system, "user": prompt}
    return [{"role": role, "content": content} for role, content in turns.items() if content is not None]


def _answers(kind: str | None, response: list[str]) -> list[str] | str:
    if kind == "preference":
        return response
    if len(response) > 1:
        raise InputError(f"add: --response is given {len(response)} times; only a preference has several answers")
    return response[0]


def _from_options(kind: str, given: dict[str, Any]) -> Entry:
    needless = given.keys() - KINDS[kind].model_fields.keys()
    if needless:
        raise InputError(f"add: {kind} has no {', '.join(sorted(needless))}; `nightschool journal add --help`")
    try:
        return entry_of({"kind": kind, **given})
    except ValueError as error:
        raise InputError(f"add: {error}") from None


def _from_input() -> Iterator[Entry]:
    if sys.stdin.isatty():
        raise InputError(f"add: name the kind of the line ({', '.join(KINDS)}), or pipe lines of JSON in")
    for number, line in enumerate(sys.stdin.buffer.read().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            if not isinstance(fields, dict):
                raise ValueError("not an object of JSON")
            yield entry_of(fields)
        except (ValueError, RecursionError) as error:
            raise InputError(f"add: standard input, line {number}: {error}; nothing was written") from None


def _file_of(date: str | None) -> Path:
    journal = Home.here().journal
    if date is None:
        files = sorted(journal.glob("*.jsonl"))
        if not files:
            raise InputError(f"{journal}: no journal yet; `nightschool journal add --help` tells how to begin one")
        return files[-1]
    try:
        file = journal / f"{datetime.date.fromisoformat(date)}.jsonl"
    except ValueError:
        raise InputError(f"show: {date} is no date; write it as 2026-11-20") from None
    if not file.is_file():
        raise InputError(f"{file}: that day has no journal")
    return file


def _time(entry: Entry) -> str:
    return datetime.datetime.fromisoformat(entry.at).strftime("%H:%M")


def _shown(entry: Entry) -> str:
    """An entry in one line of a terminal."""
    if isinstance(entry, Words):
        return _printable(entry.text, 100)
    asked = _printable(entry.messages[-1].content, 50)
    match entry:
        case Preference():
            of = f"{entry.chosen + 1}. of {len(entry.responses)}"
            return f"{asked} → {of}: {_printable(entry.responses[entry.chosen], 50)}"
        case Correction():
            return f"{asked} → {_printable(entry.response, 30)} ⇒ {_printable(entry.correction, 30)}"
        case Feedback():
            return f"{asked} → {entry.value:+g}: {_printable(entry.response, 50)}"
        case Trace():
            return f"{asked} → {_printable(entry.teacher, 20)}: {_printable(entry.response, 50)}"


def _bad(line: dict[str, Any]) -> str:
    return f"  line {line['line']}: {_printable(line['reason'])}"


def _printable(text: str, length: int = 300) -> str:
    """On one line, without what would steer a terminal, and not too long."""
    text = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _say(found: dict[str, Any], as_json: bool, *lines: str) -> None:
    """One line of JSON for a program, or lines for a person."""
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(*lines, sep="\n")
