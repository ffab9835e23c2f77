"""Transcripts: what each agent of an episode saw and wrote, and the contexts in which it wrote.

When a transcript is longer than the model's context, it goes on in a new one: the prompt, the first answer and the
latest turns. Sampler and trainer compute each answer in the same context, so that the trainer's log-probabilities are
those of what was sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

# A position in an episode's prompt and tokens, followed by the slices of these (begin, end, begin, end, …) that are the
# context from this position on.
Window = list[int]


@dataclass
class Transcript:
    """One agent's tokens after its prompt. `seen`: where its observations begin. `ended`: its answer has an end token.

    `sampler_logprobs`, `loss_mask`: as in `models/rollout.py`.
    """

    prompt: list[int]
    token_ids: list[int] = field(default_factory=list)
    sampler_logprobs: list[float] = field(default_factory=list)
    loss_mask: list[bool] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    ended: bool = True

    @property
    def context(self) -> list[int]:
        """The tokens in front of the next answer."""
        before, span = contexts(self.prompt, self.token_ids, self.windows)[-1]
        return [*before, *self.token_ids[span]]

    def wrote(
        self, tokens: Sequence[int], logprobs: Sequence[float], *, ended: bool = True, counts: bool = True
    ) -> None:
        """Append an answer. `counts`: whether to train on it."""
        self.token_ids += tokens
        self.sampler_logprobs += logprobs
        self.loss_mask += [counts] * len(tokens)
        self.ended = ended

    def saw(self, tokens: Sequence[int], most: int) -> bool:
        """Append an observation, and return True; return False if it does not fit into a context of `most` tokens.

        If the context would be longer than that, a new one begins. The latest turns fill up to half of it, so that it
        is not full again at the next turn.
        """
        first, begun = len(self.token_ids) + (not self.ended), len(self.prompt)  # an end token is still the answer's
        seen = [*self.seen, first]
        if len(self.context) + len(tokens) > most:
            whole = begun + seen[0] + len(self.token_ids) + len(tokens)
            kept = next((start for start in seen[1:] if whole - start <= most // 2), first)
            if whole - kept > most or len(seen) == 1:
                return False
            self.windows.append([begun + first, 0, begun + seen[0], begun + kept, begun + first])
        self.seen = seen
        self.token_ids += tokens
        self.sampler_logprobs += [0.0] * len(tokens)
        self.loss_mask += [False] * len(tokens)
        return True


def joined(transcripts: Sequence[Transcript]) -> Transcript:
    """Return an episode's transcripts as one, with the first one's prompt and each other one in windows of its own."""
    whole = Transcript(transcripts[0].prompt)
    for number, one in enumerate(transcripts):
        begun = len(whole.prompt) + len(whole.token_ids) if number else 0
        if number:
            own = begun + len(one.prompt)
            whole.windows.append([own, begun, own])
            whole.wrote(one.prompt, [0.0] * len(one.prompt), counts=False)
        whole.windows += [[begun + position for position in window] for window in one.windows]
        whole.token_ids += one.token_ids
        whole.sampler_logprobs += one.sampler_logprobs
        whole.loss_mask += one.loss_mask
    return whole


def contexts(
    prompt: Sequence[int], tokens: Sequence[int], windows: Sequence[Window], mask: Sequence[bool] | None = None
) -> list[tuple[list[int], slice]]:
    """Return each context of an episode: the tokens that came before, and the slice of `tokens` that followed them.

    With a `mask`, each slice ends with its last token in the mask; it is empty if there is none.
    """
    whole, begun = [*prompt, *tokens], len(prompt)
    before = [list(prompt)]
    for _, *slices in windows:
        pairs = zip(slices[::2], slices[1::2], strict=True)
        before.append([token for begin, end in pairs for token in whole[begin:end]])
    starts = [begun, *(window[0] for window in windows)]
    found: list[tuple[list[int], slice]] = []
    for one, start, end in zip(before, starts, [*starts[1:], len(whole)], strict=True):
        while mask is not None and end > start and not mask[end - begun - 1]:
            end -= 1
        found.append((one, slice(start - begun, end - begun)))
    return found
