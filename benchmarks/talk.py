"""A simulated owner who only talks: does the model learn a taste from a conversation, and which channel teaches it?

    python -m benchmarks.talk [--arms shipped random …] [--seeds 1 2 3] [--turns 100]

The owner chats with `nightschool teach` through the page's endpoints and likes short answers (at most 70 characters).
After a short answer it may praise, and goes on. After a long one it may wish for a shorter one, or say "No, " and the
answer's first words, and accepts what the page then proposes if it is short; or it blames the answer. Then it begins
anew. The arm `shipped` has the shipped settings. In `random`, verdicts are random, wishes are for shorter or longer
answers, and corrections leave the length as it is; in `random, but corrects to short` they are as short as the taste's.
`frozen` says nothing; the others leave one channel out, or also learn from one or from all that are off by default.
Before and after, answers to questions that are never asked in the chat are rated. Each run is a line in docs/talk.jsonl
and is not repeated; writes the table in docs/teaching.md.
"""

import itertools
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.inputs.champion import home_with_champion
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import GOOD, QUESTIONS
from benchmarks.machine.classroom import Classroom, classroom
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, by, ordered, paired, sweep

RESULTS, PAGE, NAME = Path("docs/talk.jsonl"), Path("docs/teaching.md"), "benchmarks.talk"
HOMES = Path("school/benchmarks/talk")
CHANNELS = ("corrections", "wishes", "verdicts")
OFF = {"going on and leaving": "teach.implicit_reward=0.1"}  # by default
WITHOUT, WITH = [f"without {channel}" for channel in CHANNELS], [f"with {channel}" for channel in OFF]
CORRECTS = "random, but corrects to short"
RANDOM = ("random", CORRECTS)  # these have no taste
ARMS = ("shipped", *RANDOM, "frozen", *WITHOUT, *WITH, "all")
LONGEST = 4  # turns of a conversation
UNSEEN = 40  # questions at each look, with five answers each
ACTS = 0.5  # how often the owner says what it thinks of an answer
SHORT = 70  # characters


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(
        __doc__, {"--arms": ["shipped", "random", "frozen"], "--seeds": [1, 2, 3], "--turns": 100}, arms=ARMS
    )
    fill(PAGE, NAME, table(sweep(RESULTS, day, arm=given.arms, seed=given.seeds, turns=[given.turns])))


def day(arm: str, seed: int, turns: int) -> dict[str, Any]:
    """Talk for a day. Return the share of short answers before and after, and what was taught."""
    chance = random.Random(seed)
    questions = chance.sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], itertools.cycle(questions[UNSEEN:])
    settings = [setting for channel, setting in OFF.items() if arm in ("all", f"with {channel}")]
    home = home_with_champion(HOMES / f"{arm}-{seed}".replace(" ", "-"))
    with classroom(home, settings) as room:
        before, conversation, length = rate(room, unseen), "", 0
        for _ in range(turns if arm != "frozen" else 0):
            room.settle()
            said = room.say(next(asked), conversation)
            conversation, length = said["conversation"], length + 1
            likes = chance.random() < 0.5 if arm in RANDOM else GOOD["short"](said["answer"]["text"])
            if said["answer"]["text"].strip() and chance.random() < ACTS:
                length += react(room, arm, said, likes, chance)
            if not likes or length >= LONGEST:
                conversation, length = "", 0
        after, state = rate(room, unseen), room.state()
    lessons = [lesson["what"]["kind"] for lesson in state["lessons"] if lesson["learned"]]
    return {
        "before": before,
        "after": after,
        "lessons": {kind: lessons.count(kind) for kind in sorted({*lessons})},
        "day_kl": state["day_kl"],
    }


def react(room: Classroom, arm: str, said: Mapping[str, Any], likes: bool, chance: random.Random) -> int:
    """Say what the owner thinks of an answer. Return how many turns this took."""
    answer, at_random = said["answer"], arm in RANDOM
    better = answer["text"][:SHORT].rpartition(" ")[0].rstrip(",;:") + "."
    wish = "Shorter, please."
    if at_random:
        wish = chance.choice([wish, "Longer, please."])
    if arm == "random":
        better = answer["text"].partition(" ")[2] or answer["text"]
    replies = {"corrections": f"No, {better}", "wishes": wish, "verdicts": ""}
    choices = [reply for channel, reply in replies.items() if arm != f"without {channel}" and not (likes and reply)]
    if not choices:
        return 0
    if reply := chance.choice(choices):
        proposal = room.say(reply, said["conversation"]).get("proposal")
        if proposal and (chance.random() < 0.5 if at_random else GOOD["short"](proposal["text"])):
            room.client.post("/api/lesson", json={"kind": "correct", **proposal})  # refused if it corrects nothing
        return 1
    room.teach("praise" if likes else "blame", {"id": answer["id"]})
    return 0


def rate(room: Classroom, questions: Sequence[str]) -> float:
    """Return the share of short answers to questions that the chat never asks, five answers each."""
    room.settle()
    room.live(False)  # to go on to the next question teaches nothing
    shown = [answer for question in questions for answer in room.ask(question)]
    room.settle()
    room.live(True)
    return statistics.mean(GOOD["short"](answer["text"]) for answer in shown for _ in range(answer["count"]))


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each arm's share of short answers before and after, by seed, and its mean gain.

    The gain is also compared with that of *shipped*, seed by seed, with Student's 95 % interval.
    """
    rows, kinds = [], by(ordered(runs, turns=None, arm=ARMS), "arm", "turns")
    for (arm, turns), same in kinds.items():
        rates = "; ".join(f"{run['before']:.2f} → {run['after']:.2f}" for run in same)
        gain = statistics.mean(map(_gain, same))
        lessons = statistics.mean(sum(run["lessons"].values()) for run in same)
        less = paired(same, kinds.get(("shipped", turns), []), _gain) if arm != "shipped" else []
        rows.append([arm, turns, rates, f"{gain:+.2f}", mean_difference(less, 2), f"{lessons:.0f}"])
    shown = markdown("arm | turns | short answers, by seed | mean gain | against shipped | lessons learned", rows)
    return (
        f"{shown}\n\nThe mean gain with the taste minus that without it, by seed: {mean_difference(by_taste(runs), 2)}."
    )


def by_taste(runs: Sequence[Run]) -> list[float]:
    """Return the mean gain of the arms whose owner has a taste, minus that of the others: by turns and seed."""
    differences = []
    for _, same in sorted(by(runs, "turns", "seed").items()):
        without = [_gain(run) for run in same if run["arm"] in (*RANDOM, "frozen")]
        with_taste = [_gain(run) for run in same if run["arm"] not in (*RANDOM, "frozen")]
        if with_taste and without:
            differences.append(statistics.mean(with_taste) - statistics.mean(without))
    return differences


def _gain(run: Run) -> float:
    return run["after"] - run["before"]


if __name__ == "__main__":
    main()
