"""The stage: it serves, or refuses with a reason, whatever the day holds; and run again it comes to the same bits."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conf.schema import StudentConfig
from conf.sections.lessons import RewardModelConfig
from models.checkpoint import is_whole
from models.hf.loading import load_tokenizer
from tasks.reward_model.fit import figures, fit_reward_model
from tasks.stage import Artifact
from tasks.tables import CORRECTIONS, HELD_OUT, PREFERENCES, read_table
from tasks.workers import HoursOverError
from tests.models.tiny import CHARACTERS, trainer_config, write_tiny
from tests.models.tiny_picks import QUICK, tiny_picks
from tests.tasks.doubles.tables import write_stage


class OwnProcess:
    """A trainer's process that is this one."""

    calls = 0

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.calls += 1
        return function(*arguments)


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "student")


def preferences(count: int) -> list[dict[str, Any]]:
    """Picks of the shortest of five answers, as the journal's table has them."""
    rows = []
    for number, pick in enumerate(tiny_picks(count, seed=1)):
        content = f"{number} " + "".join(CHARACTERS[token - 2] for token in pick.prompt)
        responses = ["".join(CHARACTERS[token - 2] for token in answer[:-1]) for answer in pick.answers]
        messages = json.dumps([{"role": "user", "content": content}])
        rows.append({"messages": messages, "responses": json.dumps(responses), "chosen": pick.chosen, "policy": "?"})
    return rows


def run(
    tmp_path: Path,
    student: Path,
    rows: list[dict[str, Any]],
    config: RewardModelConfig | None = QUICK,
    trainer: OwnProcess | None = None,
    looser: tuple[tuple[str, float], ...] = (),
    broke: str | None = None,
) -> tuple[dict[str, Any], Path, OwnProcess]:
    tmp_path.mkdir(exist_ok=True)
    tables = {"preferences": (PREFERENCES, rows), "corrections": (CORRECTIONS, [])}
    day, folder, trainer = write_stage(tmp_path / "freeze_journal", tables), tmp_path / "fit", trainer or OwnProcess()
    folder.mkdir()
    fit_reward_model.write(
        folder,
        day=day,
        date="2026-11-20",
        checkpoint=student,
        config=config,
        trainer_config=trainer_config(),
        student=StudentConfig(),
        seed=1,
        exam_questions=(),
        looser=looser,
        broke=broke,
        checkpoints=tmp_path / "checkpoints",
        trainer=trainer,
    )
    return Artifact(folder=folder, digest="").read_json("outcome.json"), folder, trainer


class LateProcess(OwnProcess):
    """A trainer's process that is not waited for."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        raise HoursOverError("the night's hours were over before it was done")


def test_a_fit_that_takes_longer_than_the_night_is_a_refusal(tmp_path: Path, student: Path) -> None:
    outcome, folder, _ = run(tmp_path, student, preferences(40), trainer=LateProcess())
    assert (outcome["serves"], outcome["reason"]) == (False, "the night's hours were over before it was done")
    assert not (folder / "checkpoint.txt").exists()


def test_a_taste_serves_and_the_same_picks_come_to_the_same_bits(tmp_path: Path, student: Path) -> None:
    outcome, folder, _ = run(tmp_path / "first", student, preferences(160))
    assert (outcome["serves"], outcome["reason"], outcome["picks"]) == (True, None, 160)
    assert outcome["accuracy"]["low"] > outcome["chance"] == pytest.approx(0.2)
    assert outcome["accuracy"]["n"] == outcome["held_out"] == len(read_table(folder / "held_out.parquet", HELD_OUT))
    assert outcome["learning_curve"] == [{"picks": 160 - outcome["held_out"]} | outcome["accuracy"]]
    assert outcome["length"]["shortest_alone"] > 0.8
    assert outcome["left_out"] == {"no_choice": 0, "too_long": 0, "refused": 0, "exam": 0, "known": 0, "correction": 0}
    kept = tmp_path / "first" / "checkpoints" / (folder / "checkpoint.txt").read_text()
    assert is_whole(kept)
    assert outcome["checkpoint"] == kept.name
    assert len(json.loads((folder / "curve.json").read_text())) > 10
    again, other, _ = run(tmp_path / "second", student, preferences(160))
    assert again == outcome
    assert {file.name: file.read_bytes() for file in other.iterdir()} == {
        f.name: f.read_bytes() for f in folder.iterdir()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_held_out_table_is_what_the_model_did_not_see(tmp_path: Path, student: Path) -> None:
    _, folder, _ = run(tmp_path, student, preferences(40), RewardModelConfig(min_picks=1000))
    held_out: Any = read_table(folder / "held_out.parquet", HELD_OUT)
    shown = {row["messages"]: row for row in preferences(40)}
    assert 4 < len(held_out) < 25
    for row in held_out.itertuples():
        assert (row.responses, row.chosen) == (shown[row.messages]["responses"], shown[row.messages]["chosen"])


@pytest.mark.parametrize(
    ("rows", "config", "reason"),
    [
        ([], QUICK, "with fewer than 30 usable picks none is fitted"),
        (preferences(29), QUICK, "with fewer than 30 usable picks none is fitted"),
        (preferences(1) * 40, QUICK, "all picks are of one side of the split by prompt"),
        (preferences(40), None, "preference_learning is direct"),
        (preferences(40), QUICK.model_copy(update={"max_tokens": 3}), "with fewer than 30 usable picks"),
    ],
)
def test_a_refusal_before_any_fit(
    tmp_path: Path, student: Path, rows: list[dict[str, Any]], config: RewardModelConfig | None, reason: str
) -> None:
    outcome, folder, trainer = run(tmp_path, student, rows, config)
    assert (outcome["serves"], outcome["checkpoint"], trainer.calls) == (False, None, 0)
    assert outcome["reason"].startswith(reason)
    assert not (folder / "checkpoint.txt").exists()
    assert figures(outcome)["reward_model/serves"] == 0
    held_out = read_table(folder / "held_out.parquet", HELD_OUT)
    assert outcome["held_out"] == len(held_out)
    assert len(held_out) == 0 or config is not None  # under `direct` all of them are lessons


def test_a_champion_that_learnt_the_judges_is_not_judged(tmp_path: Path, student: Path) -> None:
    """After a year of `preference_learning: direct`, say."""
    rows = [row | {"night": "2026-11-19"} for row in preferences(60)]
    outcome, folder, trainer = run(tmp_path, student, rows, looser=(("2026-11-19", 0.0),))
    assert outcome["reason"] == "the champion has learnt all picks that would judge it: it takes later ones"
    assert (outcome["held_out"], trainer.calls) == (0, 0)
    assert outcome["left_out"]["known"] == 60 - outcome["picks"] > 0
    assert read_table(folder / "held_out.parquet", HELD_OUT).empty


@pytest.mark.parametrize("seed", [1, 2])
def test_picks_without_a_taste_are_refused_with_the_numbers(tmp_path: Path, student: Path, seed: int) -> None:
    rows = [row | {"chosen": (number * 7 + seed) % 5} for number, row in enumerate(preferences(120))]
    outcome, folder, trainer = run(tmp_path, student, rows, QUICK.model_copy(update={"epochs": 1}))
    assert trainer.calls == 1
    assert (outcome["serves"], outcome["checkpoint"]) == (False, None)
    assert f"on {outcome['held_out']} held-out picks it is right" in outcome["reason"]
    assert not (folder / "checkpoint.txt").exists()
    assert (folder / "curve.json").exists()


def test_a_smaller_backbone_with_the_same_tokenizer(tmp_path: Path, student: Path) -> None:
    smaller = write_tiny(tmp_path / "smaller", "qwen3")
    config = QUICK.model_copy(update={"backbone": str(smaller)})
    outcome, folder, _ = run(tmp_path / "night", student, preferences(160), config)
    assert outcome["serves"]
    kept = tmp_path / "night" / "checkpoints" / (folder / "checkpoint.txt").read_text()
    assert json.loads((kept / "config.json").read_text())["model_type"] == "qwen3"
    assert json.loads((kept / "nightschool.json").read_text())["parent"] is None


def test_a_backbone_that_reads_other_tokens_is_refused(tmp_path: Path, student: Path) -> None:
    other = write_tiny(tmp_path / "other")
    tokenizer: Any = load_tokenizer(student)
    copied = type(tokenizer).from_pretrained(student)
    copied.add_tokens(["another"])
    copied.save_pretrained(other)
    outcome, _, trainer = run(
        tmp_path / "a", student, preferences(40), QUICK.model_copy(update={"backbone": str(other)})
    )
    assert outcome["reason"].startswith(
        f"reward_model.backbone: {other}: its tokenizer is not the student's: their voc"
    )
    assert trainer.calls == 0


def test_a_backbone_that_is_not_there_is_refused(
    tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    outcome, _, _ = run(tmp_path, student, preferences(40), QUICK.model_copy(update={"backbone": "nobody/nothing"}))
    assert outcome["reason"].startswith("reward_model.backbone: nobody/nothing cannot be loaded from the hub")


def test_a_backbone_without_weights_that_can_be_loaded_is_refused(tmp_path: Path, student: Path) -> None:
    pickled = shutil.copytree(student, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    config = QUICK.model_copy(update={"backbone": str(pickled)})
    outcome, _, trainer = run(tmp_path / "fit", student, preferences(40), config)
    assert outcome["reason"].startswith(f"reward_model.backbone: {pickled}/pytorch_model.bin: weights in a pickle")
    assert trainer.calls == 0


def test_a_fit_that_broke_is_a_refusal_and_not_tried_again(tmp_path: Path, student: Path) -> None:
    outcome, _, trainer = run(tmp_path, student, preferences(40), broke="OutOfMemoryError: 12 GB")
    assert outcome["reason"] == "it could not be fitted: OutOfMemoryError: 12 GB"
    assert (outcome["serves"], outcome["broke"], trainer.calls) == (False, "OutOfMemoryError: 12 GB", 0)


def test_what_mlflow_keeps() -> None:
    accuracy = {"value": 0.6, "low": 0.5, "high": 0.7, "n": 80}
    length = {"longest_alone": 0.1, "longest_top": 0.2, "correlation": None}
    whole = {"serves": True, "picks": 200, "held_out": 80, "accuracy": accuracy, "chance": 0.2, "length": length}
    assert figures(whole | {"expected_calibration_error": 0.05}) == {
        "reward_model/serves": 1.0,
        "reward_model/picks": 200.0,
        "reward_model/held_out": 80.0,
        "reward_model/accuracy": 0.6,
        "reward_model/low": 0.5,
        "reward_model/chance": 0.2,
        "reward_model/expected_calibration_error": 0.05,
        "reward_model/length_longest_alone": 0.1,
        "reward_model/length_longest_top": 0.2,
    }
