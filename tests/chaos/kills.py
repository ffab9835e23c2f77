"""The kills of a night: at the boundaries of its stages, at other events, and at random instants."""

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Sequence

from tests.chaos.events import Trap, Victim
from tests.chaos.school import DATE

SHORTEST = 0.02  # seconds; the shortest gap between two events for a random instant
VERBS = re.compile(r"^(renam|updat|alias|regist)(ered|er|ed|e|) ")  # before and after
BUSY = {  # the events after which a child is at work
    "trainer": re.compile(r"trainer "),
    "engine": re.compile(r"begin .*/(sample|quiz|quiz/[\w-]+|exam/look-\d)$"),
}


def kill_list(trace: Sequence[tuple[float, str]], count: int, seed: int) -> list[Trap]:
    """Return `count` kills over an undisturbed night's events, the same for the same seed; about a third are instants.

    One boundary of every stage, right before or after its manifest, in a random round; then other events (alias moves,
    checkpoints, notes, trainer state, update) up to the count.
    """
    chance = random.Random(seed)
    points = _boundaries(trace, chance)[: count - count // 3]
    victims: list[Victim] = ["all", "flow", "power"]
    kills = [Trap(event, victims[number % 3]) for number, event in enumerate(points)]
    roles: list[Victim] = ["trainer", "engine", "all", "flow"]
    return kills + [_instant(trace, roles[n % len(roles)], chance) for n in range(count - len(points))]


def _boundaries(trace: Sequence[tuple[float, str]], chance: random.Random) -> list[str]:
    """Return one event of each kind, stages first. Events of a kind differ only by number, digest or verb."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for _, event in trace:
        if not event.startswith(("begin ", "start")):
            plain = re.sub(r"[0-9a-f]{20}|\d+", "N", event.replace(DATE, "night"))
            kinds[VERBS.sub(r"\1 ", plain)].append(event)
    stages = sorted(kind for kind in kinds if kind.endswith("/manifest.json"))
    others = sorted(kinds.keys() - set(stages))
    chance.shuffle(stages)
    chance.shuffle(others)
    return [chance.choice(kinds[kind]) for kind in (*stages, *others)]


def _instant(trace: Sequence[tuple[float, str]], victim: Victim, chance: random.Random) -> Trap:
    """Return a random moment between two events; longer gaps are likelier."""
    gaps = [
        (event, end - start)
        for (start, event), (end, _) in itertools.pairwise(trace)
        if end - start > SHORTEST and (victim not in BUSY or BUSY[victim].match(event))
    ]
    event, seconds = chance.choices(gaps, weights=[seconds for _, seconds in gaps])[0]
    return Trap(event, victim, round(chance.uniform(0, seconds), 3))
