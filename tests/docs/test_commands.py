"""Every command of README and docs/ exists: `sh` blocks are parsed down to their options, `console` blocks are run.

A `console` block is a transcript, which is run in an empty home and must print what it shows; `…` stands for anything,
and a line of `…` for any lines. Files that a page shows whole (their first line is a comment with the name) exist. A
`yaml` block is a part of a night's configuration (`yaml prefect` is not). A `python` block compiles.
"""

import re
import shlex
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from cyclopts import CycloptsError
from typer._click.exceptions import MissingParameter, UsageError

from conf.load import STARTER, load_night
from conf.storage.home import InputError
from flows.cli import app
from tests.docs.pages import FILE, PAGES, ROOT, Block, blocks, commands, files, inline_code, run_shell, transcript

OURS = ("nightschool", "make", "python")
# Other programs that the pages show. Add a new one only after you have read its line once more.
OUTSIDE = set(
    "apt-get cd cp curl echo exec export git journalctl jq loginctl mail mkdir mlflow ray sed ssh sudo systemctl "
    "uv vllm".split()
)
INLINE = re.compile(r"(nightschool|make|prefect|python -m) \S")
PLACEHOLDER = re.compile(r"[A-Z_]+")  # FILE: the reader's own
MAKEFILE = (ROOT / "Makefile").read_text()


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the arguments of `nightschool WORDS`; raises the command line's own error for what it does not know."""
    arguments: dict[str, Any] = {}

    def record(command: Any) -> None:
        for inner in getattr(command, "commands", {}).values():
            record(inner)
            if not hasattr(inner, "commands"):
                inner.callback = lambda **given: arguments.update(given)

    command = typer.main.get_command(app)
    record(command)
    command.main(words, "nightschool", standalone_mode=False)
    return arguments


def check(words: list[str], folder: Path) -> None:
    """Check one command; its configuration is in `folder`, where the page's files are, or in the checkout."""
    program = Path(words[0]).name
    if program == "nightschool":
        check_nightschool(words[1:], folder)
    elif program == "make":
        check_make(words[1:], folder)
    elif program.startswith("python"):
        check_python(words[1:])
    elif program == "prefect":
        from prefect.cli._app import _app  # seconds; the command's own parser

        _app.parse_args([word for word in words[1:] if word != "--no-prompt"], exit_on_error=False, print_error=False)
    else:
        assert program in OUTSIDE, f"{program}: not in OUTSIDE"


def check_all(commands: list[list[str]], folder: Path) -> None:
    for words in commands:
        check(words, folder)


def check_nightschool(words: list[str], folder: Path) -> None:
    if words[-1] == "…" and not words[-2].startswith("--"):  # and so on
        words = words[:-1]
    given = parsed(words)
    config = given.get("config") or (STARTER if given.get("overrides") else None)
    if config is not None and not PLACEHOLDER.fullmatch(str(config)):
        files = [path / config for path in (folder, ROOT) if (path / config).is_file()]
        assert files, f"{config}: no such configuration"
        load_night(files[0], given.get("overrides") or [])


def check_make(words: list[str], folder: Path) -> None:
    for word in words:
        name, is_variable, value = word.partition("=")
        assert re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", MAKEFILE, re.MULTILINE), word
        if name == "ARGS" and "night" in words:
            check_nightschool(["night", "--config", str(STARTER), *shlex.split(value)], folder)


def check_python(words: list[str]) -> None:
    """Check that a module of the checkout exists, and has the options in its source."""
    if words[0] != "-m":
        return
    module = ROOT.joinpath(*words[1].split("."))
    source = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
    assert source.is_file(), f"{words[1]}: no such module"
    for option in (word.partition("=")[0] for word in words[2:] if word.startswith("--")):
        assert f'"{option}"' in source.read_text(), f"{words[1]} has no {option}"


def written(page: Path, folder: Path) -> Path:
    """Make a checkout with the page's own files in it; those of the packages are links to the real ones."""
    for entry in ("conf", "docs", "flows", "models", "tasks", "benchmarks", "Makefile", "prefect.yaml"):
        (folder / entry).symlink_to(ROOT / entry)
    shutil.copytree(ROOT / "rewards", folder / "rewards", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files(page).items():
        assert not (folder / name).exists(), f"{name} exists already: give the page's file another name"
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_every_command_and_option_exists(block: Block, tmp_path: Path) -> None:
    check_all(commands(block.text), written(block.page, tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_running_text_exists(page: Path, tmp_path: Path) -> None:
    for code in filter(INLINE.match, inline_code(page)):
        with suppress(MissingParameter):  # a command that is only named
            check_all(commands(code), tmp_path)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_every_piece_of_configuration_is_valid(block: Block, tmp_path: Path) -> None:
    (tmp_path / "night.yaml").write_text(block.text)
    if not FILE.match(block.text):  # a part: the rest is the starter's
        whole = yaml.safe_load(STARTER.read_text()) | yaml.safe_load(block.text)
        (tmp_path / "night.yaml").write_text(yaml.safe_dump(whole))
    load_night(tmp_path / "night.yaml")


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_every_piece_of_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def test_no_block_with_a_command_of_ours_escapes() -> None:
    for block in blocks():
        if block.info not in ("sh", "console", "python"):
            first = [line.split()[0] for line in block.text.splitlines() if line.strip()]
            assert not set(first) & {*OURS, "$"}, f"{block}: label it `sh`, or `console` with what is printed"


PLAYED = sorted({block.page for block in blocks("console")})


@pytest.mark.parametrize("page", PLAYED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_transcript_is_what_happens(page: Path, tmp_path: Path) -> None:
    """All transcripts of a page, one after the other in one home."""
    folder = written(page, tmp_path)
    for block in blocks("console"):
        for step in transcript(block) if block.page == page else ():
            done = run_shell(step.command, folder)
            shown = f"{block}: $ {step.command}\n{done.stdout}"
            assert done.returncode == (2 if step.shown.startswith("nightschool: ") else 0), shown
            if step.shown:
                assert re.fullmatch(pattern(step.shown), done.stdout.strip()), shown


def pattern(shown: str) -> str:
    """What a page shows, as a pattern: `…` is anything on a line, a line of `…` any lines."""
    lines = [".*" if line.strip() == "…" else re.escape(line).replace("…", "[^\n]*") for line in shown.splitlines()]
    return "(?s:" + "\n".join(lines) + ")"


@pytest.mark.parametrize(
    "wrong",
    [
        "nightschool nights",
        "nightschool night --sets a=b",
        "nightschool night --set grpo.ronds=4",
        "nightschool night --config nobody.yaml",
        "nightschool journal add gossip",
        "nightschool promote",
        "make knight",
        "prefect deployment rum nightly/starter",
        "prefect worker start --pol nightschool",
        "make night ARG=--fresh",
        "make night ARGS='--set grpo.ronds=4'",
        "python -m benchmarks.nobody",
        "python -m benchmarks.update --nothing",
        "echo x | rm -rf /",
    ],
)
def test_a_wrong_command_is_found(wrong: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, CycloptsError, InputError, UsageError)):
        check_all(commands(wrong), tmp_path)


def test_an_ellipsis_stands_for_anything_and_for_nothing_else() -> None:
    assert re.fullmatch(pattern("… good\n…\n2 bad"), "1 good\n\nwhatever\n2 bad")
    assert not re.fullmatch(pattern("… good\n2 bad"), "1 good\nwhatever\n2 bad")
    assert not re.fullmatch(pattern("1 good. …"), "1 goods and more")
