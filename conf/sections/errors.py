"""Turn pydantic's validation errors into one plain line that says what is wrong with a configuration."""

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from conf.sections.redact import redact
from conf.storage.home import InputError

# Options of earlier versions that were moved, and their present names.
MOVED = {
    "microbatch_tokens": "hardware.microbatch_tokens",
} | {
    f"{section}.{name}": f"{section}.endpoint.{name}"
    for section in ("distill.teacher", "judge")
    for name in ("base_url", "model", "max_tokens", "budget_tokens", "budget_minutes")
}
ONE_GPU = "engine and trainer share one GPU; CUDA_VISIBLE_DEVICES chooses it"
# What to do instead of the removed options, by section. A key names one option or several. N is an index in a list.
INSTEAD = {
    "": {
        "alarms": "a Prefect automation can notify you of a night; NIGHTSCHOOL_WEBHOOK gets its report",
        "devices devices.engine devices.trainer": ONE_GPU,
        "trainer_processes lanes hardware.trainer_gpus hardware.lanes": "one process trains",
        "hardware.engine_gpu hardware.trainer_gpu": ONE_GPU,
        "prefect prefect.port": "the night's server takes any free port; PREFECT_API_URL names a server of your own",
        "morning morning.webhook_variable": "set the environment variable NIGHTSCHOOL_WEBHOOK to the webhook's URL",
        "teach.own_words": "teach words with `nightschool journal add`",
        "on_policy.revision": "name a folder with that revision in on_policy.teacher",
        "tracking.hub_repo": "push a checkpoint with `hf upload --private owner/name FOLDER`",
        "reward.correct": "a correct answer earns 1",
        "sandbox.workers": "there is a program for each core",
        "engine.lora": "the engine serves the adapters of `lora`",
        "lora.lesson_rate_factor": "lessons of adapters learn at ten times their rate",
    },
    "grpo.": {
        "top_p": "training samples from the policy itself",
        "credit_gamma credit_lambda": "turns are discounted by 0.99, and traces decay by 0.95",
        "sampler_ratio_cap": "a token's weight against the sampler is at most 2",
        "overlong_share overlong_penalty": "overlong: shape takes up to 1 off, over the limit's last fifth",
        "solve_rate_decay": "with each round earlier attempts count 0.7 times as much",
        "quiz_problems": "quizzes between rounds have 100 problems; for the others there is lessons.quiz_problems",
    },
    "distill.": {
        "choice": "a lesson's solutions always come shuffled",
        "own_answers_rate": "self_distill learns at 5e-6",
        "kept_share": "a lower learning_rate changes less",
        "warmup_steps": "every lesson warms up for two steps",
    },
    "lessons.": {
        "examine": "quizzes come before and after each lesson; exam.after_lessons adds an exam for benchmarks",
        "corrections.enabled words.enabled feedback.enabled": "epochs: 0 switches a lesson off",
        "corrections.batch_size words.batch_size feedback.batch_size": "a step has 8 lines",
        "words.max_tokens": "a text is learned in pieces of 256 tokens",
        "feedback.beta picks.beta": "beta is 0.1",
        "picks.method": "picks are learned with DPO; imitating them was not shown to help",
        "feedback.desirable_weight feedback.undesirable_weight": "praise and blame count alike",
    },
    "reward_model.": {
        "learning_curve": "fits to fewer picks only showed what more picks bring; there are none any more",
        "backbone": "the reward model reads the student's lower layers",
        "epochs learning_rate head_learning_rate picks_per_step warmup_steps": "the head is fitted to its optimum",
        "centering": "it is 0.01",
        "half_life_nights max_tokens": "a pick's weight halves in 14 nights; it has at most 1,024 tokens",
    },
    "learned_reward.": {
        "tie_breaker": "problems with a verifier are graded by it alone",
        "format language": "an answer to your prompts earns 0.5 where it is complete",
        "kl_coefficient": "it is at least 0.02 while a learned reward is used; raise grpo.kl_coefficient",
    },
    "judge.": {
        "orders": "a judge sees the same answers in three orders",
        "picks": "a judge is tested on up to 100 held-out picks",
        "checkpoint context_tokens gpu_memory_share": "serve it with `vllm serve`, and name its URL in judge.endpoint",
    },
    "self_play.": {"examples": "a request shows six example problems"},
    "optimizer.": {
        "betas epsilon weight_decay": "AdamW has betas 0.9 and 0.95, and no weight decay",
        "warmup_steps max_grad_norm": "the rate warms up for two steps; gradients are clipped to the norm 1",
    },
    "exam.": {
        "further_targets": "an exam has one target; make the others guards",
        "alpha_spending": "alpha is spent on the looks of one night's exam (docs/exam-and-decision.md)",
        "vault": "guards are held against the first student as well",
        "bootstrap_samples": "intervals come from 10,000 draws",
        "target.after guards.N.after": "an exam takes the first problems of the split",
        "target.temperature guards.N.temperature": "samples are drawn at temperature 1",
    },
    "teach.": {
        "gamma trace_decay": "traces fade by 0.99 · 0.95 with each token",
        "rank": "the day's adapter has rank 16",
    },
}
ENDPOINT = {
    "key_variable": "keys are in NIGHTSCHOOL_TEACHER_KEY and NIGHTSCHOOL_JUDGE_KEY",
    "timeout_seconds retries": "an answer is asked for up to three times, for 60 seconds each",
    "budget_usd usd_per_million_prompt_tokens usd_per_million_answer_tokens": "budget_tokens limits the cost",
}
REMOVED = {option: f"use {place}" for option, place in MOVED.items()} | {
    f"{section}{name}": instead
    for section, groups in [*INSTEAD.items(), ("distill.teacher.", ENDPOINT), ("judge.", ENDPOINT)]
    for names, instead in groups.items()
    for name in names.split()
}

Key = tuple[str, ...]  # the parts of a dotted path: ("benchmarks", "0", "weight")


def fault(text: str) -> InputError:
    """Return the text as a one-line InputError, with any passwords and keys in its URLs redacted."""
    return InputError(redact(" ".join(text.splitlines())))


def shown(value: Any) -> str:
    """Return the value as one line of JSON (also valid YAML), with passwords redacted, cut to 60 characters."""
    text = redact(json.dumps(value, ensure_ascii=False, default=str))  # first, because half a URL is not recognised
    return text if len(text) <= 60 else text[:59] + "…"


def all_faults(schema: type[BaseModel], data: Any, errors: Sequence[ErrorDetails]) -> list[tuple[Key, str]]:
    """Return each invalid key of `data` with a one-line description of what is wrong with its value.

    Unknown keys come first, because they may have caused other faults. If a key and a key inside it are both
    invalid, only the inner one is returned: a list may be too short merely because its items are invalid.
    """
    faults: dict[Key, list[ErrorDetails]] = {}
    for error in errors:
        faults.setdefault(_key(data, error), []).append(error)
    inner = [key for key in faults if not any(key == other[: len(key)] and key != other for other in faults)]
    inner.sort(key=lambda key: faults[key][0]["type"] != "extra_forbidden")
    return [(key, _what(schema, key, faults[key])) for key in inner]


def _key(data: Any, error: ErrorDetails) -> Key:
    """Return the error's key in `data`: pydantic's location, less the parts that only name a branch of a union."""
    key: list[str] = []
    for part in error["loc"]:
        inside: Any = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(inside, dict) and part in inside:
            data = inside[part]
            key.append(str(part))
    if error["type"] == "missing":
        key.append(str(error["loc"][-1]))
    return tuple(key)


def _what(schema: type[BaseModel], key: Key, group: Sequence[ErrorDetails]) -> str:
    """Describe what is wrong with one value. If `group` has several errors, each is from another branch of a union."""
    first = group[0]
    if first["type"] == "missing":
        return "is missing; it has no default"
    if first["type"] == "extra_forbidden":
        option = ".".join("N" if part.isdecimal() else part for part in key)  # in the form of `REMOVED`
        if (instead := REMOVED.get(option)) is not None:
            return f"was removed: {instead}"
        fields = _section(schema, key[:-1]).model_fields
        near = difflib.get_close_matches(key[-1], sorted(fields), n=1) or [
            ".".join((*key[:-1], name, key[-1]))
            for name, field in fields.items()
            if isinstance(field.annotation, type)
            and issubclass(field.annotation, BaseModel)
            and key[-1] in field.annotation.model_fields
        ]
        if near:
            return f"unknown key; did you mean {' or '.join(map(repr, near))}?"
        return f"unknown key; known are {', '.join(sorted(fields))}"
    if first["type"] == "value_error" and len(group) == 1:
        return first["msg"].removeprefix("Value error, ")
    messages = (error["msg"].removeprefix("Input should be ").removeprefix("Value error, ") for error in group)
    allowed = " or ".join(dict.fromkeys(messages))
    return f"{shown(first['input'])} is not allowed; {allowed}"


def _section(section: type[BaseModel], key: Key) -> type[BaseModel]:
    """Return the model class of the section at `key`, e.g. BenchmarkConfig for ("benchmarks", "0")."""
    for part in key:
        if part in section.model_fields:
            section = next(_models(section.model_fields[part].annotation), section)
    return section


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
