"""The model card: what the hub reads, what its owner reads, and that it is outside a checkpoint's digest."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from conf.load import STARTER, load_night
from models.hf.checkpoint import CARD, verify
from tasks.monitoring.incidents import end_early
from tasks.registry.model_card import write_cards
from tests.tasks.doubles.night import DIGESTS, TARGET, write_config, write_exam, write_lessons, write_round
from tests.tasks.doubles.registry import ROLES, make_models


@pytest.fixture
def night(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path / "nights" / "2026-11-20"
    write_lessons(folder)
    write_config(folder)
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
    assert "- worked solutions: 191 of 193" in lines
    rows = [line for line in lines if line.startswith(f"| {TARGET} |")]
    assert len(rows) == 1
    assert rows[0].startswith(f"| {TARGET} | 400 | {accuracy:.3f} | ")
    table = lines.index("|:--|--:|--:|:--|")
    assert all(line.startswith("| arithmetic-") for line in lines[table + 1 : table + 4])  # no line between the rows
    assert f"- {decision['reasons'][0]}" in lines


def test_the_candidates_card_has_what_made_it_and_an_imported_student_has_learned_nothing(
    tmp_path: Path, night: tuple[Path, dict[str, Any]]
) -> None:
    folder, decision = night
    write_round(folder / "round-01", 1, groups=8, size=2, solved=0.5)
    texts = cards(folder, decision, tmp_path / "whole")
    assert not {"## Training", "## Recipe"} & set(texts["champion"])
    imported = "\n".join(texts["champion"])
    assert "– (the student as imported)" in imported
    assert "base_model: HuggingFaceTB/SmolLM2-135M-Instruct" in imported
    assert decision["reasons"][0] not in imported
    learned = ["worked solutions: 191 of 193", "round 1: 4 of 9"]
    assert listed(texts["candidate"], "Training")[1:] == learned
    recipe = listed(texts["candidate"], "Recipe")
    assert recipe[0] == "practice problems: arithmetic-1-2"
    assert recipe[1].startswith("a round: ")
    assert recipe[2].startswith("seed 1; ")  # and no pick: the reward model did not serve
    end_early(folder, 0, "The hours were over.", 1)
    texts = cards(folder, decision, tmp_path / "early")
    assert listed(texts["candidate"], "Training")[1:] == learned[:1]


def cards(folder: Path, decision: dict[str, Any], checkpoints: Path) -> dict[str, list[str]]:
    """The lines of each one's card."""
    models = make_models(checkpoints)
    write_cards(folder, decision, models, load_night(STARTER))
    return {role: (models[role] / CARD).read_text().splitlines() for role in ("champion", "candidate")}


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
    for role in ("champion", "candidate"):
        verify(models[role])
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
