"""The model card: what the hub reads, what its owner reads, and that it is outside a checkpoint's digest."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from conf.load import STARTER, load_night
from models.hf.checkpoint import CARD, verify
from tasks.monitoring.incidents import end_early
from tasks.registry.model_card import write_cards
from tests.tasks.doubles.night import DIGESTS, TARGET, write_exam, write_lessons
from tests.tasks.doubles.registry import ROLES, make_models


@pytest.fixture
def night(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path / "nights" / "2026-11-20"
    write_lessons(folder)
    return folder, write_exam(folder)


def test_the_hub_reads_the_exam_and_the_owner_the_lineage(tmp_path: Path, night: tuple[Path, dict[str, Any]]) -> None:
    folder, decision = night
    models = make_models(tmp_path / "checkpoints")
    write_cards(folder, decision, models, load_night(STARTER, ["student.source=Qwen/Qwen3-0.6B"]))
    card = ModelCard.load(models["candidate"] / CARD)
    assert card.data.base_model == "Qwen/Qwen3-0.6B"
    assert (card.data.library_name, card.data.pipeline_tag) == ("transformers", "text-generation")
    accuracy = decision["comparisons"]["candidate"][TARGET]["after"]["accuracy"]
    accuracies = {result.dataset_name: result.metric_value for result in card.data.eval_results or []}
    assert accuracies[TARGET] == pytest.approx(accuracy, abs=1e-4)
    assert len(accuracies) == len(decision["comparisons"]["candidate"])
    lines = card.text.splitlines()
    assert "# starter: candidate of the night 2026-11-20" in lines
    assert f"| this checkpoint | `{models['candidate'].name}` |" in lines
    assert f"| made from | `{models['distilled'].name}` |" in lines
    assert f"| champion of that night | `{DIGESTS['champion']}` |" in lines
    assert "- worked solutions: 190 kept, 2 dropped, 1 unknown" in lines
    assert "- in this order: distill → lessons → 80 rounds of grpo" in lines
    rows = [line for line in lines if line.startswith(f"| {TARGET} |")]
    assert len(rows) == 1
    assert rows[0].startswith(f"| {TARGET} | 400 | {accuracy:.3f} | ")
    table = lines.index("|:--|--:|--:|:--|")
    assert all(line.startswith("| arithmetic-") for line in lines[table + 1 : table + 4])  # no line between the rows
    assert f"- {decision['reasons'][0]}" in lines


def test_an_imported_student_has_learned_nothing_that_night(tmp_path: Path, night: tuple[Path, dict[str, Any]]) -> None:
    folder, decision = night
    models = make_models(tmp_path / "checkpoints")
    write_cards(folder, decision, models, load_night(STARTER))
    text = (models["champion"] / CARD).read_text()
    assert "nothing here: it is the student as imported" in text
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in text
    assert "## Recipe" not in text
    assert decision["reasons"][0] not in text


def test_each_card_has_the_steps_that_made_its_checkpoint(tmp_path: Path, night: tuple[Path, dict[str, Any]]) -> None:
    folder, decision = night
    stages = "stages=[distill, lessons, {grpo: 4}, self_distill, {grpo: 6}, distill]"
    for place, counts in {
        "lessons/corrections": {"lines": 5, "used": 4},
        "lessons/picks": {"lines": 0, "used": 0},
        "self_distill": {"kept": 7},
        "distill-2": {"kept": 8, "dropped": 1},
    }.items():
        (folder / place).mkdir(parents=True)
        (folder / place / "counts.json").write_text(json.dumps(counts))
        (folder / place / "manifest.json").write_text("{}")
    texts = cards(folder, decision, tmp_path / "whole", stages)
    champion, distilled, candidate = (texts[role] for role in ROLES)
    assert not {"## Data", "## Recipe"} & set(champion)
    assert "- in this order: distill → lessons" in distilled
    assert listed(distilled, "Data") == [
        "worked solutions: 190 kept, 2 dropped, 1 unknown",
        "corrections: 4 of 5 learned",
    ]
    order = "- in this order: distill → lessons → 4 rounds of grpo → self_distill → "
    assert f"{order}6 rounds of grpo → distill" in candidate
    assert listed(candidate, "Data") == [
        "practice problems: arithmetic-1-2",
        "worked solutions: 190 kept, 2 dropped, 1 unknown",
        "corrections: 4 of 5 learned",
        "the model's own correct answers: 7 kept",
        "worked solutions: 8 kept, 1 dropped",
    ]  # and no pick: the reward model did not serve
    end_early(folder, 7, "The hours were over.", 5)
    texts = cards(folder, decision, tmp_path / "early", stages)
    assert f"{order}3 rounds of grpo" in texts["candidate"]
    end_early(folder, 0, "The hours were over.", 1)
    texts = cards(folder, decision, tmp_path / "at once", stages)
    assert all("- in this order: distill" in texts[role] for role in ("distilled", "candidate"))
    assert "practice problems" not in "".join(texts["candidate"])


def cards(folder: Path, decision: dict[str, Any], checkpoints: Path, *settings: str) -> dict[str, list[str]]:
    """The lines of each one's card."""
    models = make_models(checkpoints)
    write_cards(folder, decision, models, load_night(STARTER, settings))
    return {role: (models[role] / CARD).read_text().splitlines() for role in ROLES}


def listed(lines: list[str], title: str) -> list[str]:
    """The list under a heading."""
    after = lines[lines.index(f"## {title}") + 1 :]
    lines_below = itertools.takewhile(lambda line: not line.startswith("#"), after)
    return [line.removeprefix("- ") for line in lines_below if line]


def test_a_card_is_outside_the_digest_is_the_same_twice_and_stays_as_its_owner_left_it(
    tmp_path: Path, night: tuple[Path, dict[str, Any]]
) -> None:
    folder, decision = night
    models, config = make_models(tmp_path / "checkpoints"), load_night(STARTER)
    write_cards(folder, decision, models, config)
    for checkpoint in models.values():
        verify(checkpoint)
    first = (models["candidate"] / CARD).read_text()
    (models["candidate"] / CARD).unlink()
    (models["champion"] / CARD).write_text("mine")
    write_cards(folder, decision, models, config)
    assert (models["candidate"] / CARD).read_text() == first
    assert (models["champion"] / CARD).read_text() == "mine"


def test_a_candidate_that_is_the_champion_has_the_champions_card(
    tmp_path: Path, night: tuple[Path, dict[str, Any]]
) -> None:
    folder, decision = night
    champion = make_models(tmp_path / "checkpoints")["champion"]
    write_cards(folder, decision, dict.fromkeys(ROLES, champion), load_night(STARTER))
    assert "# starter: champion of the night 2026-11-20" in (champion / CARD).read_text()
