"""The student, problems and settings that nights share, and how one is started."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlflow import MlflowClient

from conf.load import STARTER
from conf.storage.home import Home
from rewards.gsm8k import Gsm8k
from tests.chaos.events import WATCH, Trap, set_traps
from tests.chaos.night import REAL
from tests.models.support.tiny import write_tiny
from tests.rewards.datasets import write_gsm8k
from tests.tasks.doubles.processes import with_setting

DATE, NAME = "2026-01-01", "chaos"
ANSWERS = ("7", "7", "7", "3")  # what the lessons teach, in these shares; only 7 is correct
LIMIT = 1200  # seconds for one start of a night

TINY = (
    "day={generated_traces: 0, generated_preferences: 0}",
    "lessons.quiz_problems=8",
    "distill={steps: 60, max_epochs: 20, batch_size: 8, learning_rate: 0.01}",
    "grpo={rounds: 3, prompts_per_round: 4, group_size: 4, max_completion_tokens: 8, min_useful_groups: 1, "
    "refills: 1, quiz_every_rounds: 2}",
    "optimizer.learning_rate=0.003",
    "engine={max_model_len: 160, max_num_seqs: 8, kv_cache_gb: 1}",
)
STARTERS = (
    "grpo={rounds: 2, prompts_per_round: 6, group_size: 8, max_completion_tokens: 24, min_useful_groups: 1, "
    "refills: 1, quiz_every_rounds: 2}",
    "distill.steps=4",
    "day.generated_preferences=12",
    "reward_model={min_picks: 6}",
    'exam={target: {benchmark: arithmetic, levels: ["1"], problems: 40}, '
    "english_margin: 9.0, max_completion_tokens: 24}",
)


@dataclass(frozen=True)
class School:
    """Nights of one student. `server`: their Prefect API; None: each starts its own server."""

    root: Path
    settings: tuple[str, ...]
    server: str | None
    real: bool = False

    def home(self, name: str) -> Home:
        """Return a new home with a journal; its parent folder is for the log of its night."""
        home = Home(self.root / name / "school")
        home.journal.mkdir(parents=True)
        lines = [json.dumps(_lesson(n)) for n in range(24)] if not self.real else []
        (home.journal / f"{DATE}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        shutil.copy(self.root / "empty.db", home.database_file)
        set_traps(self.watch(home))
        return home

    def watch(self, home: Home) -> Path:
        """Return the folder of a home's events and traps."""
        return home.root.parent

    def start(
        self, home: Home, *traps: Trap, date: str = DATE, settings: Sequence[str] = (), config: Path = STARTER
    ) -> int:
        """Start or resume the night and wait for its end. Returns its exit code.

        `settings`: added to the school's.
        """
        set_traps(self.watch(home), *traps)
        environment = os.environ | {
            "NIGHTSCHOOL_HOME": str(home.root),
            WATCH: str(self.watch(home)),
            "PREFECT_HOME": str(self.root / "prefect"),
            **({"PREFECT_API_URL": self.server} if self.server else {"PREFECT_CLIENT_MAX_RETRIES": "1"}),  # 2 s, not 14
            **({REAL: "1"} if self.real else {"OMP_NUM_THREADS": "1"}),
        }
        environment.pop("MLFLOW_TRACKING_URI", None)
        if not self.server:
            environment.pop("PREFECT_API_URL", None)
        fixed = (f"name={NAME}", "budget_minutes=null")  # kills take time
        options = [f"--set={setting}" for setting in (*fixed, *self.settings, *settings)]
        command = ["-m", "tests.chaos.night", "night", "--config", str(config), "--date", date, *options]
        with (self.watch(home) / "said.log").open("ab") as output:
            night = subprocess.Popen(
                [sys.executable, *command], env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                return night.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(night.pid, 9)
                return night.wait()


def open_school(root: Path, server: str | None, *, real: bool = False) -> School:
    """Write the student and the problems of a new school."""
    root = root.resolve()
    root.mkdir(parents=True)
    database = Home(root).database
    MlflowClient(tracking_uri=database, registry_uri=database).search_experiments()
    Home(root).database_file.rename(root / "empty.db")
    if real:
        from models.hf.starter import write_starter

        write_starter(root / "student")
        return School(root, (f"student={{source: {root / 'student'}, system: ''}}", *STARTERS), server, real)
    write_tiny(root / "student", head_dim=32, context=256)  # which vLLM takes, too
    for split, word, count in (("train", "many", 60), ("test", "much", 16)):  # learnable: always one answer
        source = write_gsm8k(root / "problems", count, split, question=f"How {word}?", answer=ANSWERS[0])
    named = (
        f"student={{source: {root / 'student'}}}",
        f"benchmarks=[{{name: gsm8k, source: {source}}}]",
        f"exam={{target: {{benchmark: gsm8k, source: {source}, problems: 16}}, max_completion_tokens: 8}}",
    )
    return School(root, (*named, *TINY), server)


def processes_of(home: Home, patience: float) -> list[str]:
    """Return the commands that still run with this home in their environment after `patience` seconds."""
    limit = time.monotonic() + patience
    while (found := with_setting(f"NIGHTSCHOOL_HOME={home.root}")) and time.monotonic() < limit:
        time.sleep(0.1)
    return found


def _lesson(number: int) -> dict[str, object]:
    """Return a worked answer without truth: wrong ones are learned too, and GRPO has something to improve."""
    asked = {"role": "user", "content": f"{Gsm8k.instruction}\nHow many? {number}"}
    answer = f"#### {ANSWERS[number % len(ANSWERS)]}"
    line = {"version": 1, "kind": "trace", "at": DATE, "messages": [asked]}
    return {**line, "response": answer, "teacher": "chaos"}
