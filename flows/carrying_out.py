"""The decision is carried out: cards, versions, aliases, a hub; or, where MLflow is down, left to be finished."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conf.home import SHORT_REPORT, NightError
from flows.night import Night
from tasks.model_card import write_cards
from tasks.morning_hook import tell_morning
from tasks.promote import OUTCOME, promote, show_who_serves
from tasks.push import push
from tasks.registry import Registry
from tasks.report import summarise, write_report
from tasks.stage import Artifact
from tasks.tracking import Tracking


def carry_out(night: Night, decision: Artifact, sitters: Mapping[str, Path], tracking: Tracking) -> dict[str, Any]:
    """Promotes, if so decided. Returns the decision as it was carried out, and raises what `promote` does."""
    config = night.config
    write_cards(night.folder, decision.read_json("decision.json"), sitters, config)
    found = promote(decision, sitters, night.home, tracking, config.name)
    show_who_serves(Registry(tracking.client, config.name))
    if found["promote"] and (repo := config.tracking.hub_repo):
        failure = push(sitters["candidate"], repo, f"{config.name}, the night {night.date}")
        if failure:
            night.note(failure)
    return found


def left_open(
    night: Night, decision: Artifact, rounds: int, alarms: Sequence[str], links: Mapping[str, str]
) -> NightError:
    """The error that ends a night to which MLflow does not answer any more; before it, the report is written.

    The night is not finished: the command in the sentence does what is left to do, and nothing else. What was carried
    out already, the aliases moved or left where they were, the report says as it is.
    """
    outcome = night.folder / OUTCOME
    if outcome.exists():
        found = json.loads(outcome.read_text())
        left, stands = "the night's last figures and this report may be missing in it", "its decision is carried out"
    else:
        found = decision.read_json("decision.json") | {"promote": False}
        left, stands = "the promotion is not finished", "its decision stands"
    again = shlex.join(["nightschool", "night", "--config", str(night.folder / "config.yaml"), "--date", night.date])
    sentence = (
        f"MLflow does not answer, so that {left}. The night is safe, and {stands}; once MLflow is back, finish it "
        f"with: {again}"
    )
    write_report(night.folder, summarise(night.folder, found, rounds, [sentence, *alarms], links), found)
    if variable := night.config.morning.webhook_variable:
        tell_morning(variable, (night.folder / SHORT_REPORT).read_text())
    return NightError(sentence)
