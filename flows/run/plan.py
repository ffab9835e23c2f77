"""`nightschool night --plan`: what a night would do, and about how long each part takes on this machine."""

from conf.schema import NightConfig
from conf.storage.home import Home
from flows.run.speed import expected, minutes_left


def plan(home: Home, config: NightConfig, date: str) -> list[tuple[str, str]]:
    """Return the parts of the night of a date in their order, each with what it does and, where known, its seconds."""
    minutes, known, grpo = minutes_left(config), expected(home, config), config.grpo
    weights = "adapters" if config.lora else "all weights"
    exam = ", ".join(f"{part.name} (up to {part.problems or 'all'})" for part in config.exam.parts)
    lines = [
        ("night", f"{date}, {'no time limit' if minutes is None else f'{minutes:.0f} minutes'}, in {home.root}"),
        ("student", f"{config.student.source}, {weights}"),
        ("practice", ", ".join(benchmark.label for benchmark in config.benchmarks)),
    ]
    for step in config.steps:
        if step.kind == "distill":
            lesson = f"up to {config.distill.steps} steps of {config.distill.batch_size} worked solutions"
            lines.append(("lesson", lesson + (f", {known.step:.0f} s each" if known else "")))
        elif step.is_block:
            block = f"up to {len(step.rounds)} of {grpo.prompts_per_round} × {grpo.group_size} answers"
            lines.append(("rounds", block + (f", {known.round:.0f} s each" if known else "")))
        else:
            lines.append(("lesson", step.kind))
    if known and minutes is not None and config.rounds:
        fit = min(config.rounds, known.rounds_that_fit(minutes))
        lines.append(("", f"about {fit} of the {config.rounds} rounds fit into the time"))
    return [*lines, ("exam", exam), ("then", "promoted only if a paired test shows a gain and no guard fails")]
