"""A public preference set takes the owner's own path: import, freeze, reward model. Its form is real, its rows not."""

import datetime
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from tasks.journal.import_dataset import import_rows
from tasks.reward_model.fit import fit_reward_model
from tasks.stage import Artifact
from tasks.tables import HELD_OUT, read_table
from tests.models.support.tiny import trainer_config, write_tiny
from tests.models.support.tiny_picks import QUICK
from tests.rewards.local_hub import write_dataset
from tests.tasks.doubles.journals import freeze
from tests.tasks.doubles.workers import InProcessWorker

ROWS = 120
TODAY = datetime.date.today().isoformat()


def ultrafeedback_binarized(question: str, answers: Sequence[str]) -> dict[str, Any]:
    """HuggingFaceH4/ultrafeedback_binarized, its split train_prefs."""
    asked, best, worst = {"role": "user", "content": question}, *(answers[0], answers[-1])
    chosen, rejected = ([asked, {"role": "assistant", "content": answer}] for answer in (best, worst))
    scores = {"score_chosen": 8.5, "score_rejected": 4.0}
    return {"prompt": question, "prompt_id": "0", "chosen": chosen, "rejected": rejected, "messages": chosen, **scores}


def hh_rlhf(question: str, answers: Sequence[str]) -> dict[str, Any]:
    """Anthropic/hh-rlhf: both dialogues whole."""
    before = f"\n\nHuman: {question}\n\nAssistant: Well?\n\nHuman: Go on\n\nAssistant:"
    return {"chosen": f"{before} {answers[0]}", "rejected": f"{before} {answers[-1]}"}


def ultrafeedback(question: str, answers: Sequence[str]) -> dict[str, Any]:
    """openbmb/UltraFeedback: four answers with their scores, in no order."""
    scored = [
        {"model": "a", "response": answer, "fine-grained_score": 5.0 - place, "overall_score": 1.0}
        for place, answer in enumerate(answers)
    ]
    random.Random(question).shuffle(scored)
    return {"source": "made up", "instruction": question, "completions": scored}


FORMS: dict[str, tuple[Callable[[str, Sequence[str]], dict[str, Any]], int]] = {
    "ultrafeedback_binarized": (ultrafeedback_binarized, 2),
    "hh-rlhf": (hh_rlhf, 2),
    "UltraFeedback": (ultrafeedback, 4),
}


def made_up(form: Callable[[str, Sequence[str]], dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose best answer is the shortest of four."""
    chance = random.Random(1)
    lengths = [sorted(chance.sample(range(1, 13), 4)) for _ in range(ROWS)]
    return [form(f"{number} {chance.randrange(99)}", ["y" * n for n in own]) for number, own in enumerate(lengths)]


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


@pytest.mark.parametrize("name", FORMS)
def test_a_public_set_becomes_a_reward_model_that_serves(
    tmp_path: Path, student: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    form, shown = FORMS[name]
    source = write_dataset(tmp_path / name, {"default": {"train_prefs": made_up(form)}})
    imported = import_rows(tmp_path / "journal", source, split="train_prefs")
    assert (imported.added, imported.refused) == (ROWS, [])
    day = freeze(tmp_path, TODAY)
    counts = day.read_json("counts.json")
    assert (counts["preferences"]["new"], counts["quarantined"]) == (ROWS, 0)
    folder = tmp_path / "fit"
    folder.mkdir()
    fit_reward_model.write(
        folder,
        day=day,
        date=TODAY,
        checkpoint=student,
        config=QUICK,
        trainer_config=trainer_config(),
        student=StudentConfig(),
        seed=1,
        exam_questions=(),
        nights_with_smaller_holdout=(),
        broke=None,
        checkpoints=tmp_path / "checkpoints",
        trainer=InProcessWorker(),
    )
    outcome = Artifact(folder=folder, digest="").read_json("outcome.json")
    assert (outcome["serves"], outcome["reason"], outcome["picks"]) == (True, None, ROWS)
    assert outcome["chance"] == pytest.approx(1 / shown)
    assert outcome["length"]["shortest_alone"] == 1.0  # the best answer is the one that the set names
    held_out: Any = read_table(folder / "held_out.parquet", HELD_OUT)
    assert len(held_out) == outcome["held_out"] > 15
