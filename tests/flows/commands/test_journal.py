"""`nightschool journal`: what people and programs add, see and import; each wrong input is one line."""

import datetime
import json
from functools import partial
from pathlib import Path

import pytest

from conf.storage.home import Home
from conf.storage.journal import KINDS
from conf.storage.journal_file import read_file
from tests.flows.commands.command import Run, refused
from tests.tasks.doubles.journals import freeze


@pytest.fixture
def today() -> str:
    """The date as the test begins: midnight may pass between two tests."""
    return datetime.date.today().isoformat()


@pytest.fixture
def run(run: Run) -> Run:
    """Run `nightschool journal` with these arguments."""
    return partial(run, "journal")


ADDED = {
    "preference": ["--prompt", "2 + 2?", "--response", "4", "--response", "5", "--chosen", "0", "--policy", "cafe42"],
    "correction": ["--prompt", "2 + 2?", "--system", "Be brief.", "--response", "5", "--correction", "4"],
    "feedback": ["--prompt", "2 + 2?", "--response", "5", "--value", "-0.5"],
    "words": ["--text", "Owls hunt\nat night."],
    "trace": ["--prompt", "2 + 2?", "--response", "#### 4", "--teacher", "me", "--benchmark", "arithmetic"],
}


def test_a_line_of_every_kind_from_options_is_added_and_shown(run: Run, home: Home, today: str) -> None:
    for kind, options in ADDED.items():
        outcome = run("add", kind, *options)
        assert (outcome.code, outcome.out) == (0, f"{home.journal / today}.jsonl: 1 line added\n")
    assert set(ADDED) == set(KINDS) - {"conversation"}
    good, bad = read_file(home.journal / f"{today}.jsonl")
    assert ([entry.kind for _, entry in good], bad) == (list(ADDED), [])
    assert home.root.stat().st_mode & 0o777 == 0o700
    shown = run("show").out.splitlines()
    assert shown[0] == str(home.journal / f"{today}.jsonl")
    assert [line.split()[0] for line in shown[1:]] == ["1", "2", "3", "4", "5"]
    assert shown[1].endswith("preference  2 + 2? → picked 1 of 2: 4")
    assert shown[2].endswith("correction  2 + 2? → 5 ⇒ 4")
    assert shown[3].endswith("feedback    2 + 2? → -0.5: 5")
    assert shown[4].endswith("words       Owls hunt at night.")
    assert shown[5].endswith("trace       2 + 2? → me: #### 4")
    found = json.loads(run("show", today, "--json").out)
    assert found.keys() == {"file", "lines", "bad"}
    assert found["lines"][1]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [line["line"] for line in found["lines"]] == [1, 2, 3, 4, 5]


def test_a_conversation_from_a_program_is_shown(run: Run, home: Home) -> None:
    asked, said = {"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}
    talk = {"kind": "conversation", "messages": [asked, said, asked, said], "rewards": [None, -0.5]}
    assert run("add", given=json.dumps(talk).encode()).code == 0
    assert run("show").out.splitlines()[1].endswith("conversation  2 + 2? → 2 answers: –, -0.5")


def test_lines_from_a_program(run: Run, home: Home, today: str) -> None:
    lines = b'{"kind": "words", "text": "one"}\n\n{"version": 1, "at": "2026-11-20", "kind": "words", "text": "two"}'
    outcome = run("add", "--json", given=lines)
    assert json.loads(outcome.out) == {"file": str(home.journal / f"{today}.jsonl"), "added": 2}
    assert outcome.out.count("\n") == 1
    assert [entry.at for _, entry in read_file(home.journal / f"{today}.jsonl")[0]][1] == "2026-11-20"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"kind": "words", "text": x}', "not valid JSON at column 27"),
        (b'{"kind": "words", "text": "\\ud800"}', "surrogates not allowed"),
    ],
)
def test_one_bad_line_of_a_program_and_nothing_is_written(run: Run, home: Home, line: bytes, reason: str) -> None:
    said = refused(run("add", given=b'{"kind": "words", "text": "one"}\n' + line))
    assert said.startswith("add: line 2: ")
    assert reason in said
    assert said.endswith("; nothing was written")
    assert not home.root.exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "add: name the kind of line (preference, correction, feedback, words, trace), or pipe JSON lines in"),
        (["--text", "x"], "add: name the kind of line first: "),
        (["words"], "add: --text is missing"),
        (["preference", *ADDED["preference"][:8]], "add: --policy is missing (a digest from `nightschool checkpoi"),
        (["feedback", "--response", "x", "--value", "1"], "add: --prompt is missing"),
        (["words", "--text", " "], "add: words.text: is blank"),
        (["words", "--text", "x", "--value", "1"], "add: words has no value; see `nightschool journal add --help`"),
        (["correction", "--prompt", "x", "--response", "a", "--response", "b"], "add: --response is given 2 times"),
        (["correction", "--system", "x", "--response", "a", "--correction", "b"], "add: --system needs a --prompt"),
        (["preference", *ADDED["preference"][:7], "2", "--policy", "p"], "add: preference: chosen is 2"),
    ],
)
def test_options_that_make_no_line(run: Run, home: Home, arguments: list[str], reason: str) -> None:
    assert refused(run("add", *arguments)).startswith(reason)
    assert not home.root.exists()


def test_days_that_cannot_be_shown(run: Run, home: Home) -> None:
    assert refused(run("show")).startswith(f"{home.journal}: no journal yet; `nightschool journal add --help`")
    assert refused(run("show", "2026-11-20")) == f"{home.journal}: no journal for 2026-11-20"
    assert refused(run("show", "../../etc")) == "show: ../../etc is not a date; write it as 2026-11-20"


def test_a_line_is_taken_back_and_the_others_keep_their_places(run: Run, home: Home, today: str) -> None:
    for text in ("one", "zwölf", "three"):
        run("add", "words", "--text", text)
    file = home.journal / f"{today}.jsonl"
    before = file.read_bytes()
    assert run("retract", today, "2").out == f"{file}: line 2 is taken back\n"
    assert [line["text"] for line in json.loads(run("show", "--json").out)["lines"]] == ["one", "three"]
    assert file.read_bytes().split(b"\n")[::2] == before.split(b"\n")[::2]
    assert file.stat().st_size == len(before)
    for number in ("2", "9"):
        assert refused(run("retract", today, number)).startswith(f"retract: {file} has no line {number}; ")
    freeze(home.root, "2099-11-20")
    assert refused(run("retract", today, "3")).startswith("retract: the night of 2099-11-20 took this line; ")


def test_a_check_names_the_bad_lines_and_exits_with_1(run: Run, home: Home, today: str) -> None:
    run("add", "words", "--text", "x")
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
    run("add", "preference", *ADDED["preference"])
    (line,) = json.loads(run("show", "--json").out)["lines"]
    assert line["policy"] == "cafe42" * 3 + "aa"


def test_what_is_shown_does_not_steer_the_terminal(run: Run, home: Home, today: str) -> None:
    run("add", "words", "--text", "\x1b]0;owned\x07\x1b[2J\u202eowl" + "x" * 200)
    with (home.journal / f"{today}.jsonl").open("a") as stream:
        stream.write('{"version": 1, "kind": "words", "text": "x", "at": "\\u001b[2J"}\nnot JSON\n')
    shown = run("show").out
    assert "]0;owned[2Jowlxx" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert max(map(len, shown.splitlines()[1:])) < 160
    assert [line.split(":")[0] for line in shown.splitlines()[2:]] == ["  line 2", "  line 3"]


def test_an_import_and_once_more(run: Run, home: Home, today: str, tmp_path: Path) -> None:
    rows = [{"prompt": "?", "chosen": "a", "rejected": other} for other in "bca"]
    (tmp_path / "picks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    file = home.journal / f"{today}.jsonl"
    lines = run("import", str(tmp_path / "picks.jsonl"), "--limit", "3").out.splitlines()
    assert lines[0] == f"{file}: 2 lines added, 0 there already, 1 refused"
    assert lines[1].startswith("  row 3: preference: all 2 responses are the same")
    again = json.loads(run("import", str(tmp_path / "picks.jsonl"), "--json").out)
    assert (again["added"], again["known"], len(again["refused"])) == (0, 2, 1)
    assert len(read_file(file)[0]) == 2
