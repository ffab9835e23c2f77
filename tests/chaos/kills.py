"""Where a night is killed: at the boundaries of its stages, at its other turns, and at random instants inside."""

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Sequence

from tests.chaos.events import Trap, Victim
from tests.chaos.school import DATE

SHORTEST = 0.02  # seconds; a gap between two events that is worth a random instant
VERBS = re.compile(r"^(renam|updat|alias|regist)(ered|er|ed|e|) ")  # before and after
BUSY = {  # within which events which child is at work
    "trainer": re.compile(r"trainer "),
    "engine": re.compile(r"begin .*/(sample|quiz|evaluate/\w+)$"),
}


def kill_list(trace: Sequence[tuple[float, str]], count: int, seed: int) -> list[Trap]:
    """`count` kills over an undisturbed night's events, the same for the same seed: about a third are instants.

    Of every stage one boundary, before its manifest counts or right after it, in a round drawn by lot; then the other
    turns (alias moves, checkpoints, notes, the state, the update) as far as there is room.
    """
    chance = random.Random(seed)
    points = _boundaries(trace, chance)[: count - count // 3]
    victims: list[Victim] = ["all", "flow", "power"]
    kills = [Trap(event, victims[number % 3]) for number, event in enumerate(points)]
    roles: list[Victim] = ["trainer", "engine", "all", "flow"]
    return kills + [_instant(trace, roles[n % len(roles)], chance) for n in range(count - len(points))]


def _boundaries(trace: Sequence[tuple[float, str]], chance: random.Random) -> list[str]:
    """One event of each kind; what differs only by number, digest, or before and after is of one kind. Stages first."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for _, event in trace:
        if not event.startswith(("begin ", "start")):
            plain = re.sub(r"[0-9a-f]{20}|\d+", "N", event.replace(DATE, "night"))
            kinds[VERBS.sub(r"\1 ", plain)].append(event)
    stages = sorted(kind for kind in kinds if kind.endswith("/manifest.json"))
    turns = sorted(kinds.keys() - set(stages))
    chance.shuffle(stages)
    chance.shuffle(turns)
    return [chance.choice(kinds[kind]) for kind in (*stages, *turns)]


def _instant(trace: Sequence[tuple[float, str]], victim: Victim, chance: random.Random) -> Trap:
    """A moment within a gap between two events; the longer the gap, the likelier."""
    gaps = [
        (event, later - sooner)
        for (sooner, event), (later, _) in itertools.pairwise(trace)
        if later - sooner > SHORTEST and (victim not in BUSY or BUSY[victim].match(event))
    ]
    event, seconds = chance.choices(gaps, weights=[seconds for _, seconds in gaps])[0]
    return Trap(event, victim, round(chance.uniform(0, seconds), 3))
