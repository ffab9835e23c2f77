"""The decision is carried out: cards, versions, aliases, a hub; or, where no registry answers, left to be finished."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException

from conf.home import SHORT_REPORT, NightError
from flows.night import Night
from tasks.model_card import write_cards
from tasks.morning_hook import tell_morning
from tasks.promote import promote, show_who_serves
from tasks.push import push
from tasks.registry import Registry
from tasks.report import summarise, write_report
from tasks.stage import Artifact
from tasks.tracking import Tracking


def carry_out(
    night: Night,
    decision: Artifact,
    sitters: Mapping[str, Path],
    tracking: Tracking,
    rounds: int,
    alarms: Sequence[str],
    links: Mapping[str, str],
) -> dict[str, Any]:
    """Promotes, if so decided. Returns the decision as it was carried out (see `promote`).

    Raises NightError where the registry does not answer, after a report that says how to finish the night; `rounds`,
    `alarms` and `links` are for that.
    """
    config = night.config
    write_cards(night.folder, decision.read_json("decision.json"), sitters, config)
    try:
        found = promote(decision, sitters, night.home, tracking, config.name)
        show_who_serves(Registry(tracking.client, config.name))
    except MlflowException as error:
        raise _left_open(night, decision, rounds, alarms, links) from error
    if found["promote"] and (repo := config.tracking.hub_repo):
        failure = push(sitters["candidate"], repo, f"{config.name}, the night {night.date}")
        if failure:
            night.note(failure)
    return found


def _left_open(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> NightError:
    """The error that ends a night whose registry does not answer; before it, the report is written without it.

    The night is not finished: the command in the sentence carries out the decision that stands, and nothing else.
    """
    config = night.config
    again = shlex.join(["nightschool", "night", "--config", str(night.folder / "config.yaml"), "--date", night.date])
    sentence = (
        "MLflow's registry does not answer, so that the promotion is not finished. The night is safe, and its decision "
        f"stands; once the registry is back, finish it with: {again}"
    )
    found = decision.read_json("decision.json")
    still_open = found | {"promote": False}
    summary = summarise(night.folder, still_open, rounds, [sentence, *alarms], links)
    write_report(night.folder, summary, still_open)
    if variable := config.morning.webhook_variable:
        tell_morning(variable, (night.folder / SHORT_REPORT).read_text())
    return NightError(sentence)
