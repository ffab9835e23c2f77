"""`nightschool init` and `nightschool config`: write a home's configuration, and show it."""

import io
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from conf.load import STARTER, differences, frozen_yaml, load_night, own_file
from conf.schema import NightConfig
from conf.storage.durable import write_atomically
from conf.storage.home import Home, InputError, require_writable
from flows.commands.options import AsJson, Config, Overrides, configuration, print_json

SHIPPED = ("arithmetic", "gsm8k", "math", "mbpp", "ants")  # data with a configuration of its own
CLOCK = re.compile(r"(?:until )?(\d{1,2}:\d{2})")

config_app = typer.Typer(help="Show a configuration, or how it differs from another one.", no_args_is_help=True)


@config_app.command()
def show(config: Config = None, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Print a configuration with all its values. Without --config, it is the one that this home's commands use."""
    settings = configuration(config, overrides)
    if as_json:
        print_json(settings.model_dump(mode="json"))
        return
    print(f"# {config or own_file(Home.here())}, with the defaults")
    print(frozen_yaml(settings).partition("\n")[2].rstrip())


@config_app.command()
def diff(
    other: Annotated[str | None, typer.Argument(help="another file, or a night's date; default: the defaults")] = None,
    config: Config = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Print each value in which a configuration differs from another one, as `key: other → this`."""
    settings = configuration(config, overrides)
    lines = differences(_other(other, settings), settings, identifying=False)
    print_json(lines) if as_json else print("\n".join(lines) or "no difference")


def _other(name: str | None, settings: NightConfig) -> NightConfig:
    if name is None:  # without validation: there is no default of what to learn
        return NightConfig.model_construct(benchmarks=(), exam=type(settings.exam).model_construct(target=None))
    night = Home.here().nights / name / "config.yaml"
    return load_night(night if night.exists() else Path(name))


def init(
    student: Annotated[str | None, typer.Option(help="`starter`, a Hugging Face folder or hub id, or new:5M")] = None,
    data: Annotated[str | None, typer.Option(help=f"{', '.join(SHIPPED)}, or a file of your own questions")] = None,
    time: Annotated[str | None, typer.Option(help="the most that a night may take: 90m, 6h, or until 06:30")] = None,
) -> None:
    """Write this home's configuration, which all its commands then use. Asks for what no option names.

    A file of questions is .csv, .jsonl or .json, with the columns question, answer and, if known, solution.
    """
    home = Home.here()
    if home.config_file.exists():
        raise InputError(f"{home.config_file}: exists already; edit it, or move it away to begin anew")
    data = data or _ask(f"Data ({', '.join(SHIPPED)}, or a file of questions)", "arithmetic")
    file = Path(data).expanduser().resolve()
    if data not in SHIPPED and not file.is_file():
        raise InputError(f"--data: {data} is neither one of {', '.join(SHIPPED)} nor a file")
    shipped = STARTER if data == "arithmetic" else STARTER.with_name(f"{data if data in SHIPPED else 'questions'}.yaml")
    yaml = YAML()
    yaml.width = 120
    values: Any = yaml.load(shipped)
    usual = load_night(shipped)
    student = student or _ask("Student (starter, new:5M, a Hugging Face folder or hub id)", usual.student.source)
    folder = Path(student).expanduser()
    student = str(folder.resolve()) if folder.is_dir() else student
    if student != "starter" and not student.startswith("new:") and "/" not in student:
        raise InputError(
            f"--student: {student} is neither starter, new:5M, a folder nor a hub id such as Qwen/Qwen3-0.6B"
        )
    hours = f"{usual.budget_minutes:g}m" if usual.budget_minutes else "6h"
    time = time or _ask("Time (90m, 6h, or until 06:30)", hours)
    values.update(_limits(time))
    values["student"]["source"] = {"new": student.removeprefix("new:")} if student.startswith("new:") else student
    if data not in SHIPPED:
        values["benchmarks"][0]["source"] = values["exam"]["target"]["source"] = str(file)
        values["name"] = _slug(file.stem) or values["name"]
    if student != usual.student.source:  # under the same name, the nights would go on with the earlier student
        values["name"] += f"-{_slug(Path(student).name)}"
    written = io.StringIO()
    yaml.dump(values, written)
    home.make_private()
    require_writable(home.root)
    draft = home.config_file.with_suffix(".draft.yaml")
    try:
        draft.write_text(written.getvalue())
        _check(load_night(draft))
    except InputError as error:
        raise InputError(str(error).replace(str(draft), str(home.config_file))) from None
    finally:
        draft.unlink(missing_ok=True)
    write_atomically(home.config_file, written.getvalue())
    chosen = f"data {data}, student {student}, time {time}"
    print(f"{home.config_file}\n{chosen}\nNext: nightschool doctor, then nightschool night")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _ask(what: str, default: str) -> str:
    return typer.prompt(what, default) if sys.stdin is not None and sys.stdin.isatty() else default


def _limits(time: str) -> dict[str, Any]:
    """Return the settings for an answer like `90m`, `6h` or `06:30`."""
    if clock := CLOCK.fullmatch(time):
        return {"budget_minutes": None, "deadline": clock[1]}
    if not (amount := re.fullmatch(r"(\d+)\s*(m|h)", time)):
        raise InputError(f"--time: {time} must look like 90m, 6h or 06:30")
    return {"budget_minutes": int(amount[1]) * {"m": 1, "h": 60}[amount[2]]}


def _check(config: NightConfig) -> None:
    """Raise InputError if own questions cannot be read, or if too many of them are asked by the exam, too."""
    from rewards.data.benchmarks import configured
    from rewards.data.contamination import exam_index

    for benchmark in config.benchmarks:
        if benchmark.name == "questions":
            train, test = (configured(benchmark).problems(split) for split in ("train", "test"))
            exam = exam_index(tuple(problem.question for problem in test))
            asked = sum(exam.has(problem.question) for problem in train)
            if 2 * asked > len(train):
                raise InputError(
                    f"{benchmark.source}: {asked} of {len(train)} questions are almost the same as one of the exam, so "
                    "they would not be taught; questions must differ in more than a word, or in a number"
                )
