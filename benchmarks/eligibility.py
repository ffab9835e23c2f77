"""Do eligibility traces teach more than a rating of the whole answer, for an equal change of the model?

    python -m benchmarks.eligibility [--arms whole traces critic 1e-5 …] [--tastes ending beginning] [--seeds 1 2 3]

An owner rates the starter's answers, one after the other, by how they end or by how they begin. `whole` and `traces`
are the classroom's lessons (`models/learn.py`) without and with traces, and `gentle` is `whole` with smaller steps.
`critic` takes the TD errors of a linear value function of the hidden states, fitted to all ratings so far by LSTD(λ)
(Boyan 2002), with traces; `baseline` is the same with γ = λ = 1, so that a token's credit is the rating minus the value
before it. A number is the rate of the literal rule on all weights: e ← γλe + ∇log π, δ = rating − baseline, θ ← θ +
αδe. Eight answers are sampled at a time and rated one after the other. The student may come to differ from the champion
by 0.03 nats a token on everyday questions: the classroom refuses a lesson that would go beyond it, the literal rule
does not. Teaching ends after 80 ratings, or once 95 % of the limit is reached, which is checked after every eight.
Before and after, the owner rates 400 answers to other questions, which vLLM samples. Each run is a line in
docs/eligibility.jsonl and is not repeated; writes the table in docs/teaching.md.
"""

import itertools
import json
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.inputs.answers import sampled
from benchmarks.inputs.options import options
from benchmarks.inputs.owners import QUESTIONS, TOKENS
from benchmarks.inputs.starter import starter
from benchmarks.machine.child import engine
from benchmarks.outputs.page import fill, markdown
from benchmarks.outputs.power import mean_difference
from benchmarks.outputs.records import Run, by, flips, ordered, sweep
from conf.load import STARTER, load_night
from conf.schema import TeachConfig
from models import learn
from models.engine.sync_probe import take_probe, write_probe
from models.hf.checkpoint import copy_companions
from models.hf.hardware import compute_dtype
from models.hf.loading import load_model, load_tokenizer, prompt_tokens
from models.hf.lora import merged_weights
from models.lessons.day_copy import DayCopy
from models.optim.master_weights import stochastic_bf16
from models.rollout import Rollout
from models.td import gae, trace_weights
from tasks.workers.worker import Worker

RESULTS, PAGE, NAME = Path("docs/eligibility.jsonl"), Path("docs/teaching.md"), "benchmarks.eligibility"
UNSEEN = 40  # questions that are never taught; the owner rates a few answers to each
SAMPLES = 10
RATINGS = 80
KL = 0.03  # nats a token, on everyday questions: the limit
AT_ONCE = 8  # answers that are sampled together
# Nats of a lesson: with those of `gentle`, 80 ratings stay below the limit.
STEPS = {"whole": 10.0, "gentle": 6.0, "traces": 4.0, "critic": 10.0, "baseline": 10.0}
ANCHORS = 12
CPU = torch.device("cpu")
RIDGE = 10.0
TASTES: Mapping[str, Callable[[str], bool]] = {
    "ending": lambda text: len(text.rstrip(" .!?\"'").rpartition(" ")[2]) >= 7,  # with a long word
    "beginning": lambda text: len(text.strip().partition(" ")[0]) <= 3,  # with a short word
}
RATES = ("1e-5", "1e-4", "1e-3")
DECAYS = {"critic": (learn.GAMMA, learn.LAMBDA), "baseline": (1.0, 1.0)}  # γ, λ
ARMS = (*STEPS, *RATES)
Lesson = Callable[[Sequence[int], Sequence[int], float], object]  # prompt, answer, rating


def main() -> None:
    """Do the missing runs, and write the table of all."""
    given = options(__doc__, {"--arms": ARMS, "--tastes": TASTES, "--seeds": [1, 2, 3], "--ratings": RATINGS})
    with engine() as worker:
        axes = {"taste": given.tastes, "arm": given.arms, "seed": given.seeds, "ratings": [given.ratings]}
        runs = sweep(RESULTS, partial(day, Student(worker)), **axes)
    fill(PAGE, NAME, table(runs))


def day(student: "Student", taste: str, arm: str, seed: int, ratings: int) -> Run:
    """Rate answers until the model has changed enough. Return the share of liked answers before and after."""
    likes, values = TASTES[taste], list[float]()
    questions = random.Random(seed).sample(QUESTIONS, len(QUESTIONS))
    unseen, asked = questions[:UNSEEN], itertools.cycle(questions[UNSEEN:])
    student.use(student.folder)
    lesson = student.lesson(arm)
    torch.manual_seed(seed)
    while len(values) < ratings and student.kl() < 0.95 * KL:
        prompts = [student.prompt(next(asked)) for _ in range(AT_ONCE)]
        for prompt, answer in zip(prompts, student.sample(prompts), strict=True):
            values.append(1.0 if likes(student.text(answer)) else -1.0)
            lesson(prompt, answer, values[-1])
    with tempfile.TemporaryDirectory() as folder:
        looks = student.looks(student.save(Path(folder)), seed, unseen, likes)
    return looks | {"rated": len(values), "praised": statistics.mean(value > 0 for value in values)}


class Student:
    """The starter, which answers, is taught, and is compared with what it was on everyday questions.

    `worker` holds the engine, which samples a checkpoint's `answers`. The starter's own are `untaught`.
    """

    def __init__(self, worker: Worker, samples: int = SAMPLES) -> None:
        self.worker, self.config, self.samples = worker, load_night(STARTER).student, samples
        self.folder = starter().resolve()
        self.tokenizer = load_tokenizer(self.folder)
        self.untaught = cache(partial(self.answers, self.folder))
        self.use(self.folder)
        lines = files("tasks.distillation").joinpath("everyday_prompts.txt").read_text(encoding="utf-8").splitlines()
        prompts = [self.prompt(line) for line in sorted(lines, key=len)[:ANCHORS]]
        answers = self.sample(prompts, greedy=True)
        self.anchors = [pair for pair in zip(prompts, answers, strict=True) if pair[1]]
        self.champion = [self._distribution(*pair) for pair in self.anchors]

    def use(self, checkpoint: Path) -> None:
        """Answer with this checkpoint from now on."""
        self.model: Any = load_model(checkpoint, torch.float32, CPU, False).eval()

    def save(self, folder: Path) -> Path:
        """Write the weights as they are now, in the precision of this machine's engine, to a folder, and return it."""
        rounding = torch.Generator().manual_seed(0)
        weights = merged_weights(self.model, rounding)
        if compute_dtype(CPU) == torch.bfloat16:
            weights = {name: stochastic_bf16(weight, rounding) for name, weight in weights.items()}
        copy_companions(self.folder, folder)
        self.model.save_pretrained(folder, state_dict=weights)
        written = json.loads((folder / "config.json").read_text())  # it names the precision of the model in memory
        precision = str(next(iter(weights.values())).dtype).removeprefix("torch.")
        (folder / "config.json").write_text(json.dumps(written | {"dtype": precision}))
        write_probe(folder, take_probe(self.tokenizer, self._logprobs))
        return folder.resolve()

    def lesson(self, arm: str) -> Lesson:
        """Return the function that teaches a rating. Only the literal rule changes all weights."""
        if arm in RATES:
            return literal(self.model, float(arm))
        bounded = TeachConfig(traces=arm == "traces", step_nats=STEPS[arm], kl_of_day=KL, kl_per_lesson=1.0)
        copy = DayCopy(self.folder, bounded, self.anchors)
        self.model = copy.model
        if arm in DECAYS:
            return critic(copy, *DECAYS[arm])
        by_rating = {1.0: learn.praise, -1.0: learn.blame}
        return lambda prompt, answer, rating: by_rating[rating](copy, prompt, answer)

    def prompt(self, question: str) -> list[int]:
        """Return the tokens of a question."""
        return prompt_tokens(self.tokenizer, [{"role": "user", "content": question}], self.config)

    def text(self, answer: Sequence[int]) -> str:
        """Return an answer's text."""
        return str(self.tokenizer.decode([*answer], skip_special_tokens=True))

    def answers(self, checkpoint: Path, questions: Sequence[str], seed: int, temperature: float = 1) -> list[list[str]]:
        """Return a checkpoint's answers, `samples` to each question."""
        talks = [[{"role": "user", "content": question}] for question in questions]
        groups = sampled(self.worker, checkpoint, talks, self.samples, seed, temperature)
        return [[rollout.text for rollout in group] for group in groups]

    def looks(self, checkpoint: Path, seed: int, questions: Sequence[str], likes: Callable[[str], bool]) -> Run:
        """Return the share of liked answers to questions, the starter's and a checkpoint's, and the change of both."""
        looks = self.untaught(tuple(questions), seed), self.answers(checkpoint, questions, seed)
        before, after = ([likes(text) for group in look for text in group] for look in looks)
        return {
            "before": statistics.mean(before),
            "after": statistics.mean(after),
            "gained": sum(new > old for old, new in zip(before, after, strict=True)),
            "lost": sum(new < old for old, new in zip(before, after, strict=True)),
            "kl": self.kl(),
        }

    @torch.no_grad()
    def sample(self, prompts: Sequence[Sequence[int]], greedy: bool = False) -> list[list[int]]:
        """Return an answer to each prompt, with its end token if it has one, sampled at temperature 1."""
        end, width = self.tokenizer.eos_token_id, max(map(len, prompts))
        ids = torch.tensor([[end] * (width - len(prompt)) + [*prompt] for prompt in prompts])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        how = {"do_sample": not greedy, "temperature": None if greedy else 1.0, "top_k": None, "top_p": None}
        written = self.model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=TOKENS, pad_token_id=end, **how
        )[:, width:].tolist()
        return [row[: row.index(end) + 1] if end in row else row for row in written]

    def kl(self) -> float:
        """Return the mean KL(champion ‖ student) on everyday questions, in nats a token."""
        pairs = zip(self.champion, (self._distribution(*pair) for pair in self.anchors), strict=True)
        return float(torch.cat([(old.exp() * (old - new)).sum(dim=-1) for old, new in pairs]).mean())

    @torch.no_grad()
    def _distribution(self, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
        return log_distribution(self.model, prompt, answer)

    def _logprobs(self, rollouts: Sequence[Rollout]) -> list[list[float]]:
        pairs = [(self._distribution(each.prompt_token_ids, each.token_ids), each.token_ids) for each in rollouts]
        return [scores.gather(1, torch.tensor(tokens)[:, None]).squeeze(1).tolist() for scores, tokens in pairs]


def log_distribution(model: Any, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    """Return the log-probabilities of all tokens at each of an answer's tokens [T, vocabulary]."""
    ids = torch.tensor([[*prompt, *answer][:-1]])
    return model(input_ids=ids, use_cache=False, logits_to_keep=len(answer)).logits[0].log_softmax(dim=-1)


def literal(model: Any, rate: float) -> Lesson:
    """Return the rule as written. Between two ratings the weights rest, so the trace is one weighted gradient."""
    parameters, baseline = [*model.parameters()], 0.0
    model.requires_grad_(True)

    def step(prompt: Sequence[int], answer: Sequence[int], rating: float) -> None:
        nonlocal baseline
        error, baseline = rating - baseline, 0.99 * baseline + 0.01 * rating
        logprobs = log_distribution(model, prompt, answer).gather(1, torch.tensor(answer)[:, None]).squeeze(1)
        weights = trace_weights(len(answer), learn.GAMMA, learn.LAMBDA).float()
        gradient = torch.autograd.grad((weights * logprobs).sum(), parameters)
        with torch.no_grad():
            for parameter, part in zip(parameters, gradient, strict=True):
                parameter += rate * error * part

    return step


def critic(copy: DayCopy, gamma: float, lam: float) -> Lesson:
    """Return lessons by the TD errors of a value function, fitted to the ratings so far by LSTD(λ)."""
    width = copy.model.config.hidden_size
    a, b = RIDGE * torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)

    def step(prompt: Sequence[int], answer: Sequence[int], rating: float) -> object:
        states = hidden(copy, prompt, answer)
        values = [*(states[:-1] @ torch.linalg.solve(a, b)).tolist(), 0.0]
        observe(a, b, states, rating, gamma, lam)
        rewards = [0.0] * (len(answer) - 1) + [rating]
        weights = gae(rewards, values, gamma, lam).float()
        share = float(weights.abs().mean())
        return learn._learn(copy, prompt, [answer], [weights / share], learn.RATE)

    return step


@torch.no_grad()
def hidden(copy: DayCopy, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    """Return the last hidden state before each of an answer's tokens and after the last [T + 1, width], normalised."""
    ids = torch.tensor([[*prompt, *answer]])
    states = copy.model(input_ids=ids, use_cache=False, output_hidden_states=True).hidden_states[-1][0]
    return torch.nn.functional.normalize(states[len(prompt) - 1 :], dim=-1).double()


def observe(a: Tensor, b: Tensor, states: Tensor, rating: float, gamma: float, lam: float) -> None:
    """Add a rated answer to LSTD(λ)'s equations A w = b for a linear value function (Boyan 2002), in place."""
    trace = torch.zeros_like(b)
    later = [*(gamma * states[1:-1]), torch.zeros_like(b)]  # the answer ends with the rating
    for state, following in zip(states[:-1], later, strict=True):
        trace = gamma * lam * trace + state
        a += torch.outer(trace, state - following)
    b += rating * trace


def table(runs: Sequence[Run]) -> str:
    """Return a Markdown table: each arm's share of liked answers, by seed, and how much the model changed.

    Below it, each arm's gain minus that of `whole`, over both tastes, seed by seed.
    """
    rows, gains = [], {(run["arm"], run["seed"], run["taste"]): run["after"] - run["before"] for run in runs}
    for (taste, arm), same in by(ordered(runs, taste=TASTES, arm=ARMS, seed=None), "taste", "arm").items():
        rates = "; ".join(f"{run['before']:.2f} → {run['after']:.2f}" for run in same)
        gain = statistics.mean(gains[arm, run["seed"], taste] for run in same)
        *_, p = flips(same)
        rated, kl = (statistics.mean(run[name] for run in same) for name in ("rated", "kl"))
        rows.append([taste, arm, rates, f"{gain:+.2f}", f"{p:.2g}", f"{rated:.0f}", f"{kl:.3f}"])
    shown = markdown("taste | arm | liked answers, by seed | mean gain | p | ratings | KL", rows)
    minus = {arm: _minus_whole(gains, arm) for arm in ARMS if arm != "whole"}
    compared = ";\n".join(f"*{arm}* {mean_difference(each, 2)}" for arm, each in minus.items() if len(each) > 1)
    return f"{shown}\n\nMean gain over both tastes minus that of *whole*, by seed:\n{compared}."


def _minus_whole(gains: Mapping[tuple[str, int, str], float], arm: str) -> list[float]:
    """Return an arm's gain minus that of `whole`, as the mean over the tastes, for each seed that has all of them."""
    wanted = [(each, taste) for each in (arm, "whole") for taste in TASTES]
    seeds = sorted({seed for _, seed, _ in gains})
    complete = [seed for seed in seeds if all((each, seed, taste) in gains for each, taste in wanted)]
    return [statistics.mean(gains[arm, seed, t] - gains["whole", seed, t] for t in TASTES) for seed in complete]


if __name__ == "__main__":
    main()
