"""The whole night: freeze → distill → GRPO → exam → decision → promotion → report."""

import datetime
import shutil
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Completed

from conf.home import Home
from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows.grpo import Rounds
from flows.lock import hold
from flows.night import Night, date_of_night, freeze_config
from models.checkpoint import verify
from tasks.decide import decide
from tasks.distill import distill
from tasks.enroll import enroll
from tasks.evaluate import evaluate, exam_problems
from tasks.fit_reward_model import fit_reward_model
from tasks.freeze_journal import freeze_journal
from tasks.promote import promote, read_decision
from tasks.prune import prune
from tasks.registry import DAYTIME, Registry
from tasks.report import report
from tasks.stage import Artifact
from tasks.tracking import Tracking

MLFLOW_PAGES = "http://127.0.0.1:5000"
SAVING_LIMIT = 60  # seconds


@flow(name="nightly", flow_run_name="{date}", description="One night of study, from the journal to the report.")
def nightly(config: NightConfig | None = None, date: str | None = None) -> dict[str, Any]:
    """Runs or goes on with the night of a date (default: tonight's) on the home. Returns its summary."""
    home = Home.here()
    date = date or date_of_night(datetime.datetime.now())
    with hold(home.root, f"the night {date}"):
        config = config or load_night(STARTER)
        freeze_config(home.night(date), config, fresh=False)
        return concluded(study(Night(home, date, config)))


def study(night: Night) -> dict[str, Any]:
    """All stages of a night; what is committed already is not run again."""
    tracking = Tracking(night.home, night.config)
    tracking.open_run(night.folder, night.config, _prefect_link())
    try:
        summary = _stages(night, tracking)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        night.close(grace=0 if interrupted else SAVING_LIMIT)  # a state that is being written is worth waiting for
        tracking.close_run("KILLED" if interrupted else "FAILED")
        raise
    night.close()
    tracking.close_run("FINISHED")
    return summary


def _stages(night: Night, tracking: Tracking) -> dict[str, Any]:
    config = night.config
    day = _freeze(night)
    champion = _champion(night, tracking)
    exam = [problem for part in config.exam.parts for _, problem in exam_problems(part, config.sandbox)]
    distilled = night.checkpoint(
        night.run(
            distill,
            "distill",
            day=day,
            checkpoint=champion,
            config=config.distill,
            trainer_config=config.trainer,
            student=config.student,
            sandbox=config.sandbox,
            exam_questions=tuple(problem.question for problem in exam),
            max_tokens=config.engine.max_model_len,
            checkpoints=night.home.checkpoints,
            trainer=night.trainer,
        )
    )
    night.run(fit_reward_model, "fit_reward_model", day=day)
    registered = {version.digest for version in Registry(tracking.client, config.name).versions()}
    rounds = Rounds(night, distilled, exam, tracking, registered)
    sitters = {"champion": champion, "distilled": distilled, "candidate": rounds.run()}
    night.trainer.close()
    decision = night.run(
        decide,
        "decide",
        **{who: _sit(night, who, checkpoint) for who, checkpoint in sitters.items()},
        exam=config.exam,
        seed=config.seed,
        severe=rounds.watch.severe,
    )
    promote(decision, sitters, night.date, tracking, config.name)
    prune(night.home.checkpoints, night.home.nights, config.keep_nights, Registry(tracking.client, config.name))
    rounds.retire(keep=set(sitters.values()))
    shutil.rmtree(night.folder / "state", ignore_errors=True)
    return report(
        night.folder,
        read_decision(night.folder),
        len(rounds.policies),
        rounds.watch.morning(),
        _links(tracking),
        tracking,
    )


def _freeze(night: Night) -> Artifact:
    config = night.config
    practised = [entry.levels for entry in config.benchmarks if entry.name == "arithmetic"]
    levels = tuple(sorted({level for some in practised for level in some or ()}))
    return night.run(
        freeze_journal,
        "freeze_journal",
        day=config.day,
        levels=levels if levels and None not in practised else None,
        seed=str(config.seed),
        date=night.date,
        journal=night.home.journal,
        nights=night.home.nights,
    )


def _champion(night: Night, tracking: Tracking) -> Path:
    """The checkpoint that serves by day; on the first night the student as it comes. It stays tonight's champion."""
    note = night.folder / "champion.txt"
    if note.exists():
        champion = night.home.checkpoints / note.read_text()
    else:
        serving = Registry(tracking.client, night.config.name).named(DAYTIME)
        if serving is not None:
            champion = night.home.checkpoints / serving.digest
        else:
            champion = night.checkpoint(
                night.run(
                    enroll,
                    "enroll",
                    student=night.config.student,
                    checkpoints=night.home.checkpoints,
                    trainer=night.trainer,
                )
            )
        note.write_text(champion.name)
    verify(champion)
    return champion


def _sit(night: Night, who: str, checkpoint: Path) -> Artifact:
    config = night.config
    return night.run(
        evaluate,
        f"evaluate/{who}",
        parts=config.exam.parts,
        checkpoint=checkpoint,
        student=config.student,
        config=config.sampler,
        sandbox=config.sandbox,
        max_completion_tokens=config.exam.max_completion_tokens,
        engine=night.engine,
    )


def concluded(summary: dict[str, Any]) -> Any:
    """The summary as the flow's result, in a final state whose message says the alarms first. Prefect hands the state's
    data on to whoever called the flow.
    """
    alarms = summary["alarms"]
    told = f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}: {' '.join(alarms)}" if alarms else "No alarms."
    outcome = "The candidate was promoted." if summary["decision"] == "promoted" else "The champion stays."
    return Completed(message=f"{told} {outcome}", data=summary)


def _prefect_link() -> dict[str, str]:
    return {"prefect.flow_run": flow_run.get_id() or "", "prefect.url": flow_run.get_flow_run_ui_url() or ""}


def _links(tracking: Tracking) -> dict[str, str]:
    """Where the night's run is seen; of a home's own databases while `nightschool ui` serves them."""
    server = tracking.uri.rstrip("/") if tracking.uri.startswith("http") else MLFLOW_PAGES
    return {"mlflow": f"{server}/{tracking.run_path}", "prefect": flow_run.get_flow_run_ui_url() or ""}
