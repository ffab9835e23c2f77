"""`nightschool play`: watch a checkpoint play an episode of an environment turn by turn, or play it yourself."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from conf.load import load_night
from conf.schema import NightConfig
from conf.sections.benchmark import TIERS, ExamPart
from conf.storage.home import Home, InputError
from flows.commands.options import Overrides
from rewards.data.benchmarks import configured, exam_problems
from rewards.environment import Environment
from rewards.environments.episodes import checked_reset, checked_step, texts_of
from rewards.verifier import Benchmark, Problem

ANTS = Path(__file__).parents[2] / "conf" / "ants.yaml"


def play(
    checkpoint: Annotated[
        str | None,
        typer.Argument(help="a model folder, a hub id, or a checkpoint's digest; omit it to play yourself"),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="tier of ants, 0 to 6; default: the exam's")] = None,
    episode: Annotated[int, typer.Option(min=0, help="number of the exam's episode, from 0")] = 0,
    config: Annotated[
        Path | None, typer.Option("--config", help="a configuration (YAML); default: conf/ants.yaml")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Show an episode of the exam in the terminal, played by a checkpoint or by you.

    play  ·  play school/checkpoints/3f2a… --tier 1
    """
    settings = load_night(config or ANTS, overrides or [])
    part = settings.exam.target
    if tier is not None:
        if tier not in TIERS:
            raise InputError(f"--tier {tier}: there is no such tier; choose from {', '.join(TIERS)}")
        if part.benchmark != "ants":
            raise InputError(f"--tier {tier}: only ants have tiers, and exam.target is {part.name}; omit it")
        part = ExamPart(benchmark="ants", levels=(tier,), ants=part.ants)
    benchmark = configured(part, settings.sandbox)
    if benchmark.environment is None:
        raise InputError(f"exam.target: {part.name} is no environment, so there is nothing to play; name one")
    problems = exam_problems(part, settings.sandbox)
    if episode >= len(problems):
        raise InputError(f"--episode {episode}: {part.name} has {len(problems)} episodes, 0 to {len(problems) - 1}")
    problem = problems[episode]
    if checkpoint is None:
        show(benchmark.environment, problem, lambda: input("> "))
        return
    texts = iter(_played(checkpoint, benchmark, problem, settings))
    show(benchmark.environment, problem, lambda: next(texts))


def show(environment: Environment, problem: Problem, answer: Callable[[], str]) -> None:
    """Print an episode turn by turn. `answer` returns the next text, or raises EOFError or StopIteration to stop."""
    draw: Any = getattr(environment, "characters", lambda state: "")
    (state, observation), over, total, value = checked_reset(environment, problem), False, 0.0, 0.0
    while True:
        print(*filter(None, (draw(state), observation)), sep="\n")
        if over:
            break
        try:
            text = answer()
        except (EOFError, StopIteration):
            break
        state, observation, reward, terminated, truncated, info = checked_step(environment, problem, state, text)
        total += reward
        value, over = float(info.get("value", total)), terminated or truncated
        print(f"  {text}\n  {'valid' if info.get('valid', True) else 'invalid'}, reward {reward:+.3f}\n")
    print(f"{problem.problem_id}: value {value:.2f}, reward {total:.2f}")


def _played(checkpoint: str, benchmark: Benchmark, problem: Problem, settings: NightConfig) -> list[str]:
    """Let a checkpoint play an episode with greedy decoding, and return its text for each turn."""
    import tempfile

    from flows.evaluation.resolve_model import player_of, resolve_model
    from tasks.evaluation.answering import answer_questions, render_prompts

    model = resolve_model(checkpoint, "CHECKPOINT", settings.student, Home.here())
    with tempfile.TemporaryDirectory() as folder, player_of(model, settings, Path(folder)) as player:
        prompts = render_prompts(benchmark, [problem], player)
        (row,) = answer_questions(benchmark, [problem], prompts, player)
    return texts_of(row["text"])
