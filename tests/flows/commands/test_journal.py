"""`nightschool journal`: what people and programs add, see and import; each wrong input is one line."""

import datetime
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conf.storage.home import Home
from conf.storage.journal import KINDS
from conf.storage.journal_file import read_file
from tasks.journal.read import lessons_in
from tests.flows.commands.command import Run, refused
from tests.tasks.doubles.journals import has_learned


@pytest.fixture
def today() -> str:
    """The date as the test begins: midnight may pass between two tests."""
    return datetime.date.today().isoformat()


@pytest.fixture
def run(run: Run) -> Run:
    """Run `nightschool journal` with these arguments."""
    return partial(run, "journal")


ASKED = [{"role": "user", "content": "2 + 2?"}]
ADDED = {
    "preference": {"messages": ASKED, "responses": ["4", "5"], "chosen": 0, "policy": "cafe42"},
    "correction": {"messages": ASKED, "response": "5", "correction": "4"},
    "feedback": {"messages": ASKED, "response": "5", "value": -0.5},
    "words": {"text": "Owls hunt\nat night."},
    "trace": {"messages": ASKED, "response": "#### 4", "teacher": "me", "benchmark": "arithmetic"},
    "conversation": {"messages": [*ASKED, {"role": "assistant", "content": "4"}] * 2, "rewards": [None, -0.5]},
}


def added(kind: str, **fields: Any) -> bytes:
    """A line for standard input."""
    return json.dumps({"kind": kind, **fields}).encode()


def test_a_line_of_every_kind_is_added_and_shown(run: Run, home: Home, today: str) -> None:
    outcome = run("add", given=b"\n".join(added(kind, **fields) for kind, fields in ADDED.items()))
    assert (outcome.code, outcome.out) == (0, f"{home.journal / today}.jsonl: 6 lines added\n")
    assert set(ADDED) == set(KINDS)
    good, bad = read_file(home.journal / f"{today}.jsonl")
    assert ([entry.kind for _, entry in good], bad) == (list(ADDED), [])
    assert home.root.stat().st_mode & 0o777 == 0o700
    shown = run("show").out.splitlines()
    assert shown[0] == str(home.journal / f"{today}.jsonl")
    assert [line.split()[0] for line in shown[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert shown[1].endswith("preference  2 + 2? → picked 1 of 2: 4")
    assert shown[2].endswith("correction  2 + 2? → 5 ⇒ 4")
    assert shown[3].endswith("feedback    2 + 2? → -0.5: 5")
    assert shown[4].endswith("words       Owls hunt at night.")
    assert shown[5].endswith("trace       2 + 2? → me: #### 4")
    assert shown[6].endswith("conversation  2 + 2? → 2 answers: –, -0.5")
    found = json.loads(run("show", today, "--json").out)
    assert found.keys() == {"file", "lines", "bad"}
    assert [line["line"] for line in found["lines"]] == [1, 2, 3, 4, 5, 6]


def test_lines_from_a_program(run: Run, home: Home, today: str) -> None:
    lines = b'{"kind": "words", "text": "one"}\n\n{"version": 1, "at": "2026-11-20", "kind": "words", "text": "two"}'
    outcome = run("add", "--json", given=lines)
    assert json.loads(outcome.out) == {"file": str(home.journal / f"{today}.jsonl"), "added": 2}
    assert outcome.out.count("\n") == 1
    assert [entry.at for _, entry in read_file(home.journal / f"{today}.jsonl")[0]][1] == "2026-11-20"


def test_one_bad_line_of_a_program_and_nothing_is_written(run: Run, home: Home) -> None:
    said = refused(run("add", given=b'{"kind": "words", "text": "one"}\n{"kind": "words", "text": x}'))
    assert said == "add: line 2: not valid JSON at column 27; nothing was written"
    assert not home.root.exists()


def test_days_that_cannot_be_shown(run: Run, home: Home) -> None:
    assert refused(run("show")).startswith(f"{home.journal}: no journal yet; `nightschool journal add --help`")
    assert refused(run("show", "2026-11-20")) == f"{home.journal}: no journal for 2026-11-20"
    assert refused(run("show", "../../etc")) == "show: ../../etc is not a date; write it as 2026-11-20"


def test_a_line_is_taken_back_and_the_others_keep_their_places(run: Run, home: Home, today: str) -> None:
    for text in ("one", "zwölf", "three"):
        run("add", given=added("words", text=text))
    file = home.journal / f"{today}.jsonl"
    before = file.read_bytes()
    assert run("retract", today, "2").out == f"{file}: line 2 is taken back\n"
    assert [line["text"] for line in json.loads(run("show", "--json").out)["lines"]] == ["one", "three"]
    assert file.read_bytes().split(b"\n")[::2] == before.split(b"\n")[::2]
    assert file.stat().st_size == len(before)
    for number in ("2", "9"):
        assert refused(run("retract", today, number)).startswith(f"retract: {file} has no line {number}; ")
    has_learned(home.root, "cafe42", *lessons_in(home.journal, today))
    assert run("retract", today, "3").out == f"{file}: line 3 is taken back; 1 checkpoint learned it\n"


def test_a_line_from_a_time_zone_where_it_is_tomorrow_is_shown_and_taken_back(run: Run, home: Home, today: str) -> None:
    run("add", given=added("words", text="one"))
    file = home.journal / f"{today}.jsonl"
    tomorrow = file.with_stem(str(datetime.date.fromisoformat(today) + datetime.timedelta(days=1)))
    file.rename(tomorrow)
    assert "one" in run("show", tomorrow.stem).out
    assert run("retract", tomorrow.stem, "1").out == f"{tomorrow}: line 1 is taken back\n"


def test_what_is_imported_names_a_benchmark_and_is_no_journal(run: Run, home: Home, today: str, tmp_path: Path) -> None:
    run("add", given=added("words", text="one"))
    (file := tmp_path / "solved.jsonl").write_text('{"prompt": "2 + 2?", "response": "4"}\n')
    assert refused(run("import", str(file), "--benchmark", "GSM8K")).startswith("--benchmark: no benchmark 'GSM8K'; kn")
    file.write_bytes((home.journal / f"{today}.jsonl").read_bytes())
    assert refused(run("import", str(file))) == f"{file}: row 1 is a journal's line: nightschool journal add < {file}"


def test_a_check_names_the_bad_lines_and_exits_with_1(run: Run, home: Home, today: str) -> None:
    run("add", given=added("words", text="x"))
    file = home.journal / f"{today}.jsonl"
    assert (run("check", str(file)).code, run("check", str(file)).out) == (0, f"{file}: 1 good line, 0 bad\n")
    with file.open("a") as stream:
        stream.write("not JSON\n")
    checked = run("check", str(file))
    assert (checked.code, checked.err) == (1, "")
    assert checked.out.splitlines() == [f"{file}: 1 good line, 1 bad", "  line 2: not valid JSON at column 1"]
    found = json.loads(run("check", "--json", str(file)).out)
    assert found == {"file": str(file), "good": 1, "bad": [{"line": 2, "reason": "not valid JSON at column 1"}]}
    assert refused(run("check", "nowhere")) == f"nowhere: no such file; journals are in {home.journal}"


def test_a_policy_may_be_the_beginning_of_a_digest(run: Run, home: Home) -> None:
    for digest in ("cafe42" * 3 + "aa", "cafe43" * 3 + "aa"):
        (home.checkpoints / digest).mkdir(parents=True)
    run("add", given=added("preference", **ADDED["preference"]))
    (line,) = json.loads(run("show", "--json").out)["lines"]
    assert line["policy"] == "cafe42" * 3 + "aa"


def test_what_is_shown_does_not_steer_the_terminal(run: Run, home: Home, today: str) -> None:
    run("add", given=added("words", text="\x1b]0;owned\x07\x1b[2J\u202eowl" + "x" * 200))
    with (home.journal / f"{today}.jsonl").open("a") as stream:
        stream.write('{"version": 1, "kind": "words", "text": "x", "at": "\\u001b[2J"}\nnot JSON\n')
    shown = run("show").out
    assert "]0;owned[2Jowlxx" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert max(map(len, shown.splitlines()[1:])) < 160
    assert [line.split(":")[0] for line in shown.splitlines()[2:]] == ["  line 2", "  line 3"]


def test_an_import(run: Run, home: Home, today: str, tmp_path: Path) -> None:
    rows = [{"prompt": "?", "chosen": "a", "rejected": other} for other in "bca"]
    (tmp_path / "picks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    file = home.journal / f"{today}.jsonl"
    lines = run("import", str(tmp_path / "picks.jsonl"), "--limit", "3").out.splitlines()
    assert lines[0] == f"{file}: 2 lines added, 0 there already, 1 refused"
    assert lines[1].startswith("  row 3: preference: all 2 responses are the same")
