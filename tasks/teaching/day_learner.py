"""The day copy with its lessons in order. Any lesson can be undone, as if it had never been taught."""

import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from conf.schema import NightConfig, StudentConfig
from conf.storage.journal import (
    FROM_CHAR,
    UNFINISHED,
    Answer,
    Conversation,
    Correction,
    Entry,
    Feedback,
    Preference,
    Words,
)
from models import learn
from models.engine.sync_probe import take_probe, write_probe
from models.hf.loading import Tokenizer, answer_text, answer_tokens, load_tokenizer, prompt_tokens
from models.hf.lora import load_adapter, save_adapter
from models.lessons.day_copy import DayCopy
from models.lessons.outcome import LessonOutcome
from models.lessons.preference_data import Example
from models.optim.trainer_state import StateError
from models.reward_model import fit_head
from models.rollout import Rollout

ANCHORS, ANCHOR_TOKENS = 4, 12  # everyday questions, and the most tokens of each answer; every lesson evaluates all
OPENING = 16  # the most tokens that a template puts before an answer
SNAPSHOTS = 20  # the most snapshots kept; each takes about 10 MB for a student of 135M parameters


class DayLearner:
    """Holds the day copy, which depends only on the champion, the configuration, and the lessons in their order.

    Undoing a lesson restores the nearest snapshot before it and learns the later lessons again. On a CPU, the result
    is the same, bit for bit, as if the lesson had never been taught.
    """

    def __init__(self, champion: Path, config: NightConfig) -> None:
        self.student = config.student
        self.max_tokens = config.engine.max_model_len  # the limit for a prompt and its answer together
        self.tokenizer = load_tokenizer(champion, self.student.trust_remote_code)
        self.day = DayCopy(champion, config.teach, trust_remote_code=self.student.trust_remote_code)
        self.day.anchor(self._everyday_answers())
        self.lessons: dict[str, Sequence[Entry]] = {}  # each lesson's entries by its name, in order
        self._picks: dict[str, tuple[Tensor, int] | None] = {}  # see `_pick`
        self._snapshots: dict[int, dict[str, Tensor]] = {0: self.day.snapshot()}  # by the number of lessons before it

    @property
    def digest(self) -> str:
        """The digest of the adapter's weights, as 20 hex digits."""
        digest = hashlib.sha256()
        for name, parameter in sorted(self.day.adapter.items()):
            digest.update(name.encode() + parameter.detach().cpu().numpy().tobytes())
        return digest.hexdigest()[:20]

    def resume(self, adapter: Path, lessons: Sequence[tuple[str, Sequence[Entry]]]) -> bool:
        """Continue from a saved adapter, which has learned these lessons. Return False if it cannot be read."""
        try:
            load_adapter(self.day.model, adapter)
        except (OSError, SafetensorError, StateError):
            self.day.restore(self._snapshots[0])
            return False
        self.lessons = dict(lessons)
        self._snapshots[len(self.lessons)] = self.day.snapshot()
        return True

    def learn(self, name: str, entries: Sequence[Entry]) -> LessonOutcome:
        """Learn the next lesson: one journal entry, or several that make up one lesson.

        Raises ValueError, with a reason for the owner, if the lesson cannot be learned by day.
        """
        try:
            outcome = self._teach(entries)
        except RuntimeError as error:  # perhaps out of memory; the adapter may have changed already
            self.day.restore(self._snapshots[len(self.lessons)])
            raise ValueError(f"it failed: {str(error).splitlines()[0][:200]}") from error
        self.lessons[name] = entries
        self._snapshots[len(self.lessons)] = self.day.snapshot()
        for number in sorted(self._snapshots)[1:-SNAPSHOTS]:  # the first stays, for undoing older lessons
            del self._snapshots[number]
        return outcome

    def write(self, folder: Path) -> None:
        """Write the adapter in peft's format, and the sync probe that later verifies a merge of the adapter."""

        def logprobs(rollouts: Sequence[Rollout]) -> list[list[float]]:
            return [self.day.logprobs(each.prompt_token_ids, [each.token_ids])[0].tolist() for each in rollouts]

        save_adapter(self.day.model, folder)
        write_probe(folder, take_probe(self.tokenizer, logprobs))

    def prepare(self, pick: Preference) -> None:
        """Compute what any pick among these answers needs first."""
        prompt, tokens = self._rendering(pick)
        self.day.prepare(prompt, [tokens(answer) for answer in dict.fromkeys(pick.responses)])

    def forget(self, name: str) -> dict[str, LessonOutcome]:
        """Undo a lesson, if it was learned, and learn the later lessons again. Return their outcomes by name."""
        if name not in self.lessons:
            return {}
        lessons = [*self.lessons.items()]
        number = [*self.lessons].index(name)
        start = max(known for known in self._snapshots if known <= number)
        self.day.restore(self._snapshots[start])
        self._snapshots = {known: kept for known, kept in self._snapshots.items() if known <= start}
        self.lessons = dict(lessons[:start])
        for each, entries in lessons[start:number]:
            self.learn(each, entries)
        return {each: self.learn(each, entries) for each, entries in lessons[number + 1 :]}

    def preferred(self, shown: Preference) -> int | None:
        """Return which of the answers shown the owner would pick, as far as today's picks and corrections tell.

        `shown.chosen` is ignored. None without picks, or if the output of the model's frozen layers cannot be kept.
        """
        picks = [pick for lesson in self.lessons.items() if (pick := self._pick(*lesson))]
        prompt, tokens = self._rendering(shown)
        states = self.day.states(prompt, [tokens(answer) for answer in shown.responses])
        if states is None or not picks:
            return None
        head = fit_head([states for states, _ in picks], [chosen for _, chosen in picks], [1.0] * len(picks))
        return int((torch.stack(states) @ head).argmax())

    def _pick(self, name: str, entries: Sequence[Entry]) -> tuple[Tensor, int] | None:
        """Return the hidden states [n, width] of the answers that a lesson chose from, and the index of the chosen."""
        match entries:
            case [Preference() as entry]:
                responses, chosen = entry.responses, entry.responses[entry.chosen]
            case [Correction() as entry]:
                responses, chosen = [entry.response, entry.correction], entry.correction
            case _:
                return None
        if name not in self._picks:
            different = list(dict.fromkeys(responses))
            prompt, tokens = self._rendering(entry)
            states = self.day.states(prompt, [tokens(answer) for answer in different])
            self._picks[name] = (torch.stack(states), different.index(chosen)) if states else None
        return self._picks[name]

    def greedy_answer(self, messages: Sequence[dict[str, str]], max_tokens: int) -> tuple[str, bool]:
        """Return the day copy's greedy answer to a conversation, and whether it is finished."""
        prompt = torch.tensor([prompt_tokens(self.tokenizer, messages, self.student)], device=self.day.device)
        model: Any = self.day.model
        written = model.generate(input_ids=prompt, do_sample=False, max_new_tokens=max_tokens)
        tokens = written[0][prompt.shape[1] :].tolist()
        return answer_text(self.tokenizer, tokens), self.tokenizer.eos_token_id in tokens

    def _everyday_answers(self) -> list[Example]:
        """Return everyday questions with the beginnings of the champion's answers, on which the drift is measured."""
        lines = files("tasks.distillation").joinpath("everyday_prompts.txt").read_text(encoding="utf-8").splitlines()
        found = list[Example]()
        for line in sorted(lines, key=len)[:ANCHORS]:
            messages = [{"role": "user", "content": line}]
            answer, _ = self.greedy_answer(messages, ANCHOR_TOKENS)
            prompt = prompt_tokens(self.tokenizer, messages, self.student)
            found.append((prompt, answer_tokens(self.tokenizer, answer, finished=False)))
        return found

    def history(self, messages: Sequence[dict[str, str]], answer: str, finished: bool) -> list[tuple[str, int, float]]:
        """Return an answer's log-probability (nats) under the champion (named "") and after each lesson, by name.

        Each comes with the number of lessons since the one before it in the list: only those with a snapshot are there.
        """
        prompt = prompt_tokens(self.tokenizer, messages, self.student)
        tokens = answer_tokens(self.tokenizer, answer, finished)
        now, names, found = self.day.snapshot(), ["", *self.lessons], list[tuple[str, int, float]]()
        before = 0
        try:
            for number, kept in sorted(self._snapshots.items()):
                self.day.restore(kept)
                found.append((names[number], number - before, float(self.day.logprobs(prompt, [tokens])[0].sum())))
                before = number
        finally:
            self.day.restore(now)
        return found

    def _teach(self, entries: Sequence[Entry]) -> LessonOutcome:
        """Teach the day copy one journal entry, or several entries that criticise answers to the same prompt.

        Raises ValueError, with a reason for the owner, if the lesson cannot be learned by day.
        """
        day, entry = self.day, entries[0]
        if isinstance(entry, Words):
            first, *words = self.tokenizer.encode(entry.text, add_special_tokens=False)
            if not words:
                raise ValueError("a single word has nothing to predict: write a sentence")
            if len(words) >= self.max_tokens:
                raise ValueError(f"the text has more than {self.max_tokens} tokens: the night reads all of it")
            return learn.learn_from_human(day, [first], words)
        if isinstance(entry, Conversation):
            return learn.learn_from_conversation(day, *turns_of(entry, self.tokenizer, self.student, self.max_tokens))
        prompt, tokens = self._rendering(entry)
        if len(entries) > 1:
            several = [each for each in entries if isinstance(each, Feedback)]
            return learn.blame(day, prompt, *(tokens(each.response) for each in several), size=abs(several[0].value))
        match entry:
            case Preference():
                answers = list(dict.fromkeys(entry.responses))
                chosen = answers.index(entry.responses[entry.chosen])
                return learn.learn_from_selection(day, prompt, [tokens(answer) for answer in answers], chosen)
            case Correction():
                return learn.learn_from_correction(day, prompt, tokens(entry.response), tokens(entry.correction))
            case Feedback() if entry.value == 0:
                raise ValueError("feedback of 0 says nothing")
            case Feedback() if entry.value > 0:
                return learn.praise(day, prompt, tokens(entry.response), entry.value)
            case Feedback():
                answer, start = tokens(entry.response), entry.extra(FROM_CHAR)
                if start is None:
                    return learn.blame(day, prompt, answer, size=-entry.value)
                return learn.wrong_from(day, prompt, answer, token_at(self.tokenizer, entry.response, int(start)))
            case _:
                raise ValueError(f"a line of kind {entry.kind} is learned by night")

    def _rendering(self, entry: Answer) -> tuple[list[int], Callable[[str], list[int]]]:
        """Return the tokens of an entry's conversation, and a function that tokenizes an answer to it."""
        prompt = prompt_tokens(self.tokenizer, entry.turns, self.student)
        unfinished = entry.extra(UNFINISHED) or ()

        def tokens(answer: str) -> list[int]:
            found = answer_tokens(self.tokenizer, answer, answer not in unfinished)
            if len(prompt) + len(found) > self.max_tokens:
                most = f"more than {self.max_tokens} tokens together"
                raise ValueError(f"prompt and answer have {most}: the night may still learn them")
            return found

        return prompt, tokens


def turns_of(
    entry: Conversation, tokenizer: Tokenizer, student: StudentConfig, max_tokens: int
) -> tuple[list[int], list[tuple[int, int]], list[float]]:
    """Return a conversation's tokens and, for each assistant turn, its token span (start, end) and its value.

    Raises ValueError if the conversation is too long, or if the template renders a turn differently once others follow.
    """
    messages, unfinished = entry.turns, entry.extra(UNFINISHED) or ()
    last = answer_tokens(tokenizer, messages[-1]["content"])
    tokens, turns = prompt_tokens(tokenizer, messages[:-1], student) + last, list[tuple[int, int]]()
    if len(tokens) > max_tokens:
        raise ValueError(f"the conversation has more than {max_tokens} tokens: the night may still learn its turns")
    for turn in (number for number, message in enumerate(messages) if message["role"] == "assistant"):
        *said, end_token = answer_tokens(tokenizer, messages[turn]["content"])
        # a template may open an answer differently in a generation prompt than in an earlier turn
        begun = len(prompt_tokens(tokenizer, messages[:turn], student, answering=False))
        start = next((at for at in range(begun, begun + OPENING) if tokens[at : at + len(said)] == said), None)
        if start is None:
            raise ValueError("the chat template renders earlier turns differently: the night learns them one by one")
        end = start + len(said)
        ended = tokens[end : end + 1] == [end_token] and messages[turn]["content"] not in unfinished
        turns.append((start, end + ended))
    return tokens[: turns[-1][1]], turns, entry.values


def token_at(tokenizer: Tokenizer, answer: str, character: int) -> int:
    """Return the index of the token that contains a character; past the answer's end, the index of the end token."""
    encoded: Any = tokenizer(answer, add_special_tokens=False, return_offsets_mapping=True)
    ends = [end for _, end in encoded["offset_mapping"]]
    return next((number for number, end in enumerate(ends) if end > character), len(ends))
