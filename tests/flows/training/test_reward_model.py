"""Rounds with a learned reward, and rankings of held-out picks: the real stages and trainer on a tiny student.

In the reward model's place is one that likes length, and so can be hacked, or one that likes what the owner picks.
"""

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prefect import flow

import flows.training.reward_model
import tasks.reward_model.learned_reward
from conf.load import STARTER, load_night
from conf.storage.home import Home
from flows.grpo import Rounds
from flows.run.context import Night
from flows.run.history import read_round_metrics
from flows.training.reward_model import learned_reward, rank_held_out
from models.hf.checkpoint import keep, write_lineage
from models.hf.loading import answer_tokens, load_tokenizer, prompt_tokens
from models.trainer import Trainer
from tasks.journal.tables import CORRECTIONS, FEEDBACK, PREFERENCES
from tasks.monitoring.incidents import incidents
from tasks.reward_model import process
from tasks.stage import Artifact
from tasks.tables import LEARNED, PROMPTS, SCORES, read_table
from tasks.workers.worker import WorkerDiedError
from tests.flows.rounds import DATE, School, TinyEngine
from tests.models.support.chat_server import Reply, chat_server
from tests.models.support.chat_server import said as said_by_server
from tests.models.support.tiny import trainer_config, write_tiny
from tests.tasks.doubles.tables import write_held_out, write_stage
from tests.tasks.doubles.workers import FailingWorker, InProcessWorker

ROUNDS = 6
SETTINGS = [
    f"grpo.rounds={ROUNDS}",
    "grpo.prompts_per_round=8",
    "grpo.group_size=8",
    "grpo.refills=0",
    "grpo.max_completion_tokens=24",
    "learned_reward.owner_share=0.75",
    "optimizer.learning_rate=0.004",
]
FEW = (
    *("grpo.prompts_per_round=4", "grpo.group_size=2", "grpo.max_completion_tokens=8"),
    "learned_reward.owner_share=0.25",
)
PICKS, LETTERS = 40, "abcdefgh"
OUTCOME = {  # what the report reads of it
    "reason": "",
    "picks": 160,
    "held_out": PICKS,
    "accuracy": {"value": 0.9, "low": 0.8, "high": 0.95},
    "chance": 0.5,
    "length": {"longest_alone": 0.0, "shortest_alone": 0.0, "longest_top": 0.0},
    "calibration": [],
}

Taste = Callable[[list[int]], float]


def likes_length(answer: list[int]) -> float:
    return float(len(answer))


def likes_brevity(answer: list[int]) -> float:
    """As the owner, whose picks are the short answers."""
    return -float(len(answer))


def breaks(answer: list[int]) -> float:
    """As a reward model that the GPU has no memory for."""
    raise RuntimeError("CUDA out of memory.\nTried to allocate 2 GiB")


class JudgingTrainer:
    """The trainer, with a stand-in for the reward model."""

    def __init__(self, worker: InProcessWorker, taste: Taste, killed_at: int | None) -> None:
        self.worker, self.taste, self.judged, self.killed_at = worker, taste, 0, killed_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worker, name)

    def call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        if function is process.score_answers:
            self.judged += 1
            if self.judged == self.killed_at:
                raise KeyboardInterrupt
            return [[self.taste(answer) for answer in answers] for _, answers in arguments[1]]
        return self.worker.call(function, *arguments, **options)


@dataclass
class Studied:
    """A night's rounds."""

    folder: Path
    candidate: Path
    rounds: Rounds
    trainer: JudgingTrainer
    engine: TinyEngine

    @property
    def figures(self) -> list[dict[str, Any]]:
        return list(read_round_metrics(self.folder))

    def ranked(self, number: int) -> float:
        """The share of held-out picks ranked right after a round."""
        folder = self.folder / f"round-{number:02d}" if number else self.folder
        return json.loads((folder / "rank_picks" / "ranking.json").read_text())["accuracy"]


def study(
    school: School, name: str, taste: Taste, *settings: str, serves: bool = True, killed_at: int | None = None
) -> Studied:
    """Run or resume the rounds of a night; it is killed at the given call of the reward model."""
    engine, trainer = TinyEngine(), JudgingTrainer(school.trainer, taste, killed_at)
    night = school.night(name, engine, *SETTINGS, *settings)
    night.trainer = trainer
    base = night.home.checkpoints / school.student.name
    day, fitted = write_day(night.folder, base.name, serves)
    candidate, rounds = school.run(night, day, learned=learned_reward(night, day, fitted, base))
    return Studied(night.folder, candidate, rounds, trainer, engine)


def write_day(night: Path, checkpoint: str, serves: bool) -> tuple[Artifact, Artifact]:
    """A day with prompts of its owner, and held-out picks of the reward model: of two answers always the short one."""
    if not (night / "freeze_journal").exists():
        asked = [
            {"messages": said(f"Tell {n}"), "responses": '["a", "b"]', "chosen": 0, "policy": "cafe"} for n in range(12)
        ]
        tables = {"preferences": (PREFERENCES, asked), "corrections": (CORRECTIONS, []), "feedback": (FEEDBACK, [])}
        write_stage(night / "freeze_journal", tables)
        chance = random.Random(1)
        picks = [(f"Say {n}", [words(chance, 3), words(chance, 14)], 0) for n in range(PICKS)]
        fitted = write_held_out(night, picks).folder
        (fitted / "outcome.json").write_text(json.dumps(OUTCOME | {"serves": serves}))
        (fitted / "checkpoint.txt").write_text(checkpoint)
    day, fit = (night / name for name in ("freeze_journal", "fit_reward_model"))
    return Artifact(folder=day, digest="day"), Artifact(folder=fit, digest="fit")


def said(text: str) -> str:
    return json.dumps([{"role": "user", "content": text}])


def words(chance: random.Random, length: int) -> str:
    return "".join(chance.choice(LETTERS) for _ in range(length))


def taught_student(folder: Path) -> Path:
    """A tiny student that gives short answers of a few letters, as its owner likes them."""
    draft, taught = write_tiny(folder / "draft"), folder / "taught"
    tokenizer, config = load_tokenizer(draft), load_night(STARTER, []).student
    trainer = Trainer.load(draft, trainer_config(learning_rate=0.01))
    chance = random.Random(0)

    def example() -> tuple[list[int], list[int]]:
        prompt = prompt_tokens(tokenizer, json.loads(said(f"Tell {chance.randrange(99)}")), config)
        return prompt, answer_tokens(tokenizer, words(chance, chance.randint(1, 8)))

    for _ in range(40):
        trainer.imitate([example() for _ in range(16)])
    trainer.save_checkpoint(taught)
    write_lineage(taught, None)
    return keep(taught, folder / "students")


@pytest.fixture(scope="module", autouse=True)
def _only_the_learned_reward_and_ranked_every_other_round() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows.training.reward_model, "RANKED_EVERY", 2)
        patch.setattr(tasks.reward_model.learned_reward, "COMPLETE", 0.0)
        yield


@pytest.fixture(scope="module")
def taught(school: School, tmp_path_factory: pytest.TempPathFactory) -> School:
    """Nights whose student gives short answers."""
    root = tmp_path_factory.mktemp("taught")
    return replace(school, root=root, student=taught_student(root))


@pytest.fixture(scope="module")
def hacked(taught: School) -> Studied:
    return study(taught, "hacked", likes_length)


def scores(folder: Path, number: int) -> Any:
    folder = folder / f"round-{number:02d}"
    table: Any = read_table(folder / "score" / "scores.parquet", SCORES)
    asked = read_table(folder / "select_prompts" / "prompts.parquet", PROMPTS)
    return table.merge(asked[["group", "benchmark", "source"]], on="group")


@pytest.mark.full
def test_a_reward_that_likes_length_is_found_out(hacked: Studied) -> None:
    alarm = hacked.rounds.monitor.hacked
    assert alarm.name == "learned_reward_hacked"
    assert alarm.sentence in hacked.rounds.monitor.alarms.sentences
    assert not hacked.rounds.monitor.severe  # the night goes on, without it
    ended = alarm.round
    assert ended < ROUNDS
    lengths = [figures["completion_length"] for figures in hacked.figures]
    assert lengths[ended - 1] > 1.1 * lengths[0]
    assert hacked.ranked(ended) < hacked.ranked(0) - 0.1
    for number, figures in enumerate(hacked.figures, 1):
        assert ("reward/learned" in figures) == (number <= ended)
        sources = {"journal", "benchmark"} if number <= ended else {"benchmark"}
        assert set(scores(hacked.folder, number).source) == sources
    assert hacked.trainer.judged == ended
    assert hacked.rounds._trainer_config.grpo.kl_coefficient == 0.02  # the KL term stays
    manifests = [json.loads(file.read_text()) for file in hacked.folder.glob("round-*/checkpoint/manifest.json")]
    assert len({manifest["inputs"]["config"] for manifest in manifests}) == 1


@pytest.mark.full
def test_a_night_killed_while_the_reward_model_judges_comes_to_the_same_end(taught: School, hacked: Studied) -> None:
    alarm = hacked.rounds.monitor.hacked
    assert alarm.round is not None  # or it is never killed
    with pytest.raises(KeyboardInterrupt):
        study(taught, "killed", likes_length, killed_at=alarm.round)
    for calls, judged in ((ROUNDS - alarm.round, 1), (0, 0)):
        studied = study(taught, "killed", likes_length)
        assert (len(studied.engine.asked), studied.trainer.judged) == (calls, judged)
        assert studied.candidate.name == hacked.candidate.name
        assert studied.rounds.monitor.hacked == alarm


@pytest.mark.slow
def test_a_reward_model_that_fails_costs_no_night_and_is_not_asked_again(school: School) -> None:
    settings = ("grpo.rounds=3", *FEW)
    studied = study(school, "broken", breaks, *settings)
    assert (studied.trainer.judged, len(studied.figures), studied.rounds.monitor.severe) == (1, 3, ())
    asked = [scores(studied.folder, number) for number in (1, 2, 3)]
    assert [set(table.source) for table in asked] == [{"journal", "benchmark"}, {"benchmark"}, {"benchmark"}]
    assert asked[0].reward.isna().tolist() == (asked[0].source == "journal").tolist()
    assert not any("reward/learned" in figures for figures in studied.figures)
    assert list(studied.rounds.monitor.rankings) == [(1, 0)]  # nothing is to be watched any more
    (incident,) = incidents(studied.folder)
    assert "failed on a round's completions, and was not used from then on: CUDA out of memory. Tried" in incident
    shutil.copytree(school.root / "broken", school.root / "broken-killed")
    night = school.root / "broken-killed" / "nights" / DATE
    (night / "alarms.json").unlink()
    for lost in ("score", "credit", "checkpoint"):
        shutil.rmtree(night / "round-01" / lost)
    for number in (2, 3):
        shutil.rmtree(night / f"round-{number:02d}")
    over = study(school, "broken-killed", likes_brevity, *settings)  # now there is memory
    assert (len(over.engine.asked), over.trainer.judged) == (2, 0)
    assert over.candidate.name == studied.candidate.name


def test_a_reward_model_that_does_not_serve_changes_nothing(school: School) -> None:
    studied = study(school, "plain", likes_length, "grpo.rounds=1", *FEW, serves=False)
    assert studied.trainer.judged == 0
    assert not list(studied.folder.rglob("rank_picks"))
    assert not (studied.folder / "owner_prompts").exists()
    inputs = json.loads((studied.folder / "round-01" / "score" / "manifest.json").read_text())["inputs"]
    assert not {"learned", "learned_reward"} & set(inputs)
    inputs = json.loads((studied.folder / "round-01" / "select_prompts" / "manifest.json").read_text())["inputs"]
    assert not {"owner", "owner_share"} & set(inputs)
    assert studied.rounds._trainer_config == studied.rounds.night.config.trainer


# --- a judge in its place


@pytest.mark.slow
def test_a_judge_that_proves_itself_serves_in_place_of_the_reward_model(school: School) -> None:
    """It puts the short answers first, which the owner picks."""

    def judge(request: dict[str, Any]) -> Reply:
        shown = re.findall(r'<answer id="(.+?)">(.*?)</answer>', request["messages"][-1]["content"], re.DOTALL)
        ranked = sorted(shown, key=lambda each: (len(each[1]), each[1]))
        return said_by_server(json.dumps({"ranking": [[name] for name, _ in ranked]}))

    with chat_server(judge) as server:
        endpoint = f"judge={{endpoint: {{base_url: '{server.url}', model: wise}}}}"
        settings = ("stages=[{grpo: 1}, {grpo: 1}]", *FEW, endpoint)
        studied = study(school, "judged", breaks, *settings, serves=False)
        asked = len(server.requests)
        examined = json.loads((studied.folder / "examine_judge" / "outcome.json").read_text())
        assert (examined["serves"], examined["groups"]) == (True, PICKS)
        assert asked > examined["asked"]
        for number in (1, 2):
            judged = studied.folder / f"round-{number:02d}" / "rank_by_judge"
            assert read_table(judged / "learned.parquet", LEARNED).learned.notna().any()
            assert set(scores(studied.folder, number).source) == {"journal", "benchmark"}
        loaded_for = [studied.folder / path for path in ("rank_picks-2", "round-02/checkpoint", "round-02/rank_picks")]
        configs = [json.loads((one / "manifest.json").read_text())["inputs"]["config"] for one in loaded_for]
        assert len(set(configs)) == 1  # or the trainer would be loaded anew
        over = study(school, "judged", breaks, *settings, serves=False)
        assert (len(over.engine.asked), len(server.requests), over.candidate.name) == (0, asked, studied.candidate.name)


# --- the rankings before and after the rounds


@pytest.mark.usefixtures("prefect_server")
def test_a_trainer_that_dies_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The ranking is not made up for once the night has decided without it."""
    night = Night(Home(tmp_path / "school"), DATE, load_night(STARTER, ["lora={rank: 2}"]))
    night.folder.mkdir(parents=True)
    fitted, champion = write_held_out(tmp_path, [("Shall we?", ["yes", "no"], 0)]), write_tiny(tmp_path / "one")

    @flow
    def ranked() -> Artifact | None:
        return rank_held_out(night, fitted, "champion", champion)

    night.trainer = FailingWorker(WorkerDiedError("the trainer died"))
    assert ranked() is None
    assert "the champion does not rank the held-out picks: the trainer died" in caplog.text
    write_stage(night.folder / "decide", {})
    night.trainer = InProcessWorker()
    assert ranked() is None
    assert not list(night.folder.rglob("ranking.json"))
