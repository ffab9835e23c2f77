"""The whole night: freeze → distill → GRPO → exam → decision → promotion → report."""

import datetime
import shutil
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Completed, State

from conf.home import Home
from conf.hours import clocks_in
from conf.load import STARTER, load_night
from conf.schema import NightConfig
from flows.dates import check_deadline, checked_date, date_of_night, too_late
from flows.grpo import Rounds, round_metrics
from flows.lock import NightRunningError, hold
from flows.night import Night, freeze_config
from flows.preflight import finished_summary
from models.checkpoint import verify
from tasks.alarms import exam_alarms, forgotten_kinds, round_alarms
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
from tasks.report_evidence import kind_history, ungraded_answers
from tasks.stage import Artifact
from tasks.tracking import Tracking

MLFLOW_PAGES = "http://127.0.0.1:5000"
SAVING_LIMIT = 60  # seconds
REFUSED = "Refused"


def _scheduled(config: NightConfig) -> datetime.datetime:
    """The scheduled start of this run, as the night's clocks show it; of one that a person starts: now."""
    moment = flow_run.get_scheduled_start_time()
    return clocks_in(config.deadline_time_zone, moment.timestamp() if moment else None)


def _run_name() -> str:
    parameters = flow_run.get_parameters()
    return parameters.get("date") or date_of_night(_scheduled(parameters.get("config") or load_night(STARTER)))


@flow(name="nightly", flow_run_name=_run_name, description="One night of study, from the journal to the report.")
def nightly(config: NightConfig | None = None, date: str | None = None) -> dict[str, Any] | State[Any]:
    """Runs or goes on with the night of a date (default: of its scheduled start) on the home. Returns its summary.

    A start that comes too late, or while another night runs, ends in the state `Refused`, which says why: no night has
    failed. Raises InputError for a date or a deadline that cannot be, before anything is written.
    """
    home, config = Home.here(), config or load_night(STARTER)
    now, scheduled = clocks_in(config.deadline_time_zone), _scheduled(config)
    if reason := too_late(scheduled, now, flow_run.get_run_count()):
        return Completed(name=REFUSED, message=reason)
    date = checked_date(date or date_of_night(min(scheduled, now)), "date", now)
    check_deadline(config, date, now)
    try:
        with hold(home.root, f"the night {date}"):
            freeze_config(home.night(date), config, fresh=False)
            return finished_summary(home, date) or study(Night(home, date, config))
    except NightRunningError as error:
        return Completed(name=REFUSED, message=str(error))


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
    sat = {"champion": _sit(night, "champion", champion), "distilled": _sit(night, "distilled", distilled)}
    slower = max(one.seconds for one in sat.values())  # before the rounds: how many of them fit depends on it
    rounds = Rounds(night, distilled, exam, tracking, registered, slower)
    sitters = {"champion": champion, "distilled": distilled, "candidate": rounds.run()}
    night.trainer.close()
    sat["candidate"] = _sit(night, "candidate", sitters["candidate"])
    decision = night.run(
        decide,
        "decide",
        **sat,
        exam=config.exam,
        seed=config.seed,
    )
    promote(decision, sitters, night.date, tracking, config.name)
    prune(night.home.checkpoints, night.home.nights, config.keep_nights, Registry(tracking.client, config.name))
    rounds.retire(keep=set(sitters.values()))
    shutil.rmtree(night.folder / "state", ignore_errors=True)
    return report(
        night.folder,
        read_decision(night.folder),
        len(rounds.policies),
        _alarms(night.folder),
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


def _alarms(folder: Path) -> list[str]:
    found = round_alarms(round_metrics(folder)) + exam_alarms(ungraded_answers(folder))
    return found + forgotten_kinds(kind_history(folder))


def _prefect_link() -> dict[str, str]:
    return {"prefect.flow_run": flow_run.get_id() or "", "prefect.url": flow_run.get_flow_run_ui_url() or ""}


def _links(tracking: Tracking) -> dict[str, str]:
    """Where the night's run is seen; of a home's own databases while `nightschool ui` serves them."""
    server = tracking.uri.rstrip("/") if tracking.uri.startswith("http") else MLFLOW_PAGES
    return {"mlflow": f"{server}/{tracking.run_path}", "prefect": flow_run.get_flow_run_ui_url() or ""}
