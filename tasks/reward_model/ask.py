"""Ask a judge behind an endpoint to rank groups of answers, each in several orders."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conf.sections.lessons import EndpointConfig
from models.hf.teacher_client import JUDGE_KEY, Question, Replies, ask
from tasks.reward_model.judge_prompts import Ranking, ranking_of, requests, scores
from tasks.tables import Row

ORDERS = 3  # in which a judge sees the same answers; where they disagree, it does not count
Local = Callable[[], Path]


@dataclass(frozen=True)
class Judged:
    """What a judge made of some groups.

    `scores`: from 0 to 1 for each answer of a group, None where it is not to be trusted. `rankings`: rows of the table
    RANKINGS. `flips`: of the pairs of orders of one group, the share with another best answer; None without a pair.
    """

    scores: list[list[float] | None]
    rankings: list[Row]
    flips: float | None
    replies: Replies

    @property
    def summary(self) -> Row:
        """The counts and costs, for a stage's JSON file."""
        asked, judged = self.replies, [each for each in self.scores if each is not None]
        return {
            "groups": len(self.scores),
            "judged": len(judged),
            "order_flips": self.flips,
            "asked": asked.asked,
            "cached": asked.cached,
            "failed": dict(asked.failed),
            "stopped": asked.stopped,
            "tokens": asked.tokens,
        }


@dataclass(frozen=True)
class Group:
    """A question with the answers to it; the rest names them in the table."""

    question: str
    answers: Sequence[str]
    samples: Sequence[int]
    number: int
    problem_id: str


def judge_groups(
    groups: Sequence[Group], endpoint: EndpointConfig, cache: Path, until: float, night: str, local: Local | None
) -> Judged:
    """Rank the answers of each group; equal answers are shown once and share a score.

    `local`: makes sure that a judge that the night serves itself is up, and returns its socket file. `cache`, `until`
    and the limits are those of `models/hf/teacher_client.py`. A judge that fails never raises: what it
    did not rank has no scores.
    """
    different = [list(dict.fromkeys(group.answers)) for group in groups]
    asked = [
        (index, order, request)
        for index, (group, answers) in enumerate(zip(groups, different, strict=True))
        for order, request in enumerate(requests(group.question, answers, ORDERS, seed=0))
    ]
    questions = [Question([{"role": "user", "content": request.text}]) for _, _, request in asked]
    replies = Replies([])
    if questions:
        replies = ask(questions, endpoint, cache, until, f"{night}-judge", local() if local else None, JUDGE_KEY)
    found: list[list[Ranking | None]] = [[] for _ in groups]
    rows: list[Row] = []
    for (index, order, request), reply in zip(asked, replies.answers, strict=True):
        ranking = ranking_of(reply, request.ids)
        found[index].append(ranking)
        group = groups[index]
        samples = [group.samples[group.answers.index(answer)] for answer in different[index]]
        rows.append(
            {"problem_id": group.problem_id, "group": group.number, "order": order}
            | {"shown": json.dumps([samples[answer] for answer in request.ids.values()])}
            | {"ranking": json.dumps([[samples[a] for a in place] for place in ranking]) if ranking else None}
        )
    given: list[list[float] | None] = []
    for group, answers, rankings in zip(groups, different, found, strict=True):
        each = scores(rankings, len(answers))
        given.append(None if each is None else [each[answers.index(answer)] for answer in group.answers])
    return Judged(given, rows, _flips(found), replies)


def question_of(messages: Sequence[dict[str, str]]) -> str:
    """Return a conversation as a judge reads it: the question alone, or all turns by their speakers."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def _flips(rankings: Sequence[Sequence[Ranking | None]]) -> float | None:
    pairs = [
        set(first[0]).isdisjoint(second[0])
        for group in rankings
        for number, first in enumerate(group)
        for second in group[number + 1 :]
        if first is not None and second is not None
    ]
    return sum(pairs) / len(pairs) if pairs else None
