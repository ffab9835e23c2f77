"""Ask a judge behind an endpoint to rank groups of answers, each in several orders."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from conf.sections.lessons import EndpointConfig
from models.hf.teacher_client import JUDGE_KEY, Question, Replies, ask
from tasks.reward_model.judge_prompts import Ranking, ranking_of, requests, scores
from tasks.tables import Row

Local = Callable[[], Path]
log = logging.getLogger("nightschool")


@dataclass(frozen=True)
class Judged:
    """What a judge made of some groups.

    `scores`: from 0 to 1 for each answer of a group, None where it is not to be trusted. `flips`: of the pairs of
    orders of one group, the share with another best answer; None without a pair.
    """

    scores: list[list[float] | None]
    flips: float | None
    replies: Replies

    @property
    def summary(self) -> Row:
        """The counts and costs, for a stage's JSON file."""
        costs = {name: value for name, value in vars(self.replies).items() if name != "answers"}
        judged = sum(each is not None for each in self.scores)
        return {"groups": len(self.scores), "judged": judged, "order_flips": self.flips} | costs


class Group(NamedTuple):
    """A question and the answers to it."""

    question: str
    answers: Sequence[str]


def judge_groups(
    groups: Sequence[Group], endpoint: EndpointConfig, cache: Path, until: float, night: str, local: Local | None
) -> Judged:
    """Rank the answers of each group; equal answers are shown once and share a score.

    `local`: makes sure that a judge that the night serves itself is up, and returns its socket file. `cache`, `until`
    and the limits are those of `models/hf/teacher_client.py`. A judge that fails never raises: what it
    did not rank has no scores.
    """
    different = [list(dict.fromkeys(group.answers)) for group in groups]
    asked = [requests(group.question, answers) for group, answers in zip(groups, different, strict=True)]
    questions = [Question((("user", request.text),)) for orders in asked for request in orders]
    replies = Replies([])
    if questions:
        replies = ask(questions, endpoint, cache, until, f"{night}-judge", local() if local else None, JUDGE_KEY)
    texts = iter(replies.answers)
    rankings = [[ranking_of(next(texts), request.ids) for request in orders] for orders in asked]
    found: list[list[float] | None] = []
    for group, answers, given in zip(groups, different, rankings, strict=True):
        each = scores(given, len(answers))
        found.append(None if each is None else [each[answers.index(answer)] for answer in group.answers])
    if replies.stopped:
        log.warning("stopped asking the judge %s: %s", endpoint.model, replies.stopped)
    return Judged(found, _flips(rankings), replies)


def question_of(messages: Sequence[dict[str, str]]) -> str:
    """Return a conversation as a judge reads it: the question alone, or all turns by their speakers."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def _flips(rankings: Sequence[Sequence[Ranking | None]]) -> float | None:
    pairs = [
        set(first[0]).isdisjoint(second[0])
        for group in rankings
        for first, second in combinations(filter(None, group), 2)
    ]
    return sum(pairs) / len(pairs) if pairs else None
