"""Options of earlier versions: what replaces each, for whoever still sets it."""

from collections.abc import Iterator, Sequence
from typing import Any

Data = dict[str, Any]

# Each is the same option at another place.
MOVED = {
    "microbatch_tokens": "hardware.microbatch_tokens",
    "lanes": "hardware.lanes",
    "devices.engine": "hardware.engine_gpu",
    "devices.trainer": "hardware.trainer_gpus",
} | {
    f"{section}.{name}": f"{section}.endpoint.{name}"
    for section in ("distill.teacher", "judge")
    for name in ("base_url", "model", "max_tokens", "budget_tokens", "budget_minutes")
}
# What holds instead of each group of options; N stands for the items of a list.
INSTEAD = {
    "grpo.temperature grpo.top_p": "training samples from the policy itself",
    "grpo.credit_gamma grpo.credit_lambda": "turns are discounted by 0.99, and traces decay by 0.95",
    "grpo.sampler_ratio_cap": "a token's weight against the sampler is at most 2",
    "grpo.overlong_share grpo.overlong_penalty": "overlong: shape takes up to 1 off, over the limit's last fifth",
    "grpo.solve_rate_decay": "with each round earlier attempts count 0.7 times as much",
    "grpo.quiz_problems": "quizzes between rounds have 100 problems; for the others there is lessons.quiz_problems",
    "distill.choice": "a lesson's solutions always come shuffled",
    "distill.own_answers_rate": "self_distill learns at 5e-6",
    "distill.warmup_steps optimizer.warmup_steps": "rounds and lessons warm up for two steps",
    "distill.teacher.key_variable judge.key_variable": "set NIGHTSCHOOL_TEACHER_KEY and NIGHTSCHOOL_JUDGE_KEY",
    "distill.teacher.timeout_seconds judge.timeout_seconds": "an attempt at an answer has 60 seconds",
    "distill.teacher.retries judge.retries": "an answer is asked for up to three times",
    "distill.teacher.budget_usd judge.budget_usd distill.teacher.usd_per_million_prompt_tokens "
    "judge.usd_per_million_prompt_tokens distill.teacher.usd_per_million_answer_tokens "
    "judge.usd_per_million_answer_tokens": "endpoint.budget_tokens limits what an endpoint may cost",
    "judge.orders": "a judge sees the same answers in three orders",
    "judge.context_tokens": "a judge in a folder has 4,096 tokens for a request and its reply",
    "judge.gpu_memory_share": "a judge in a folder takes 0.3 of the GPU's memory",
    "lessons.examine": "quizzes come before and after each lesson; exam.after_lessons adds an exam for benchmarks",
    "lessons.corrections.enabled lessons.words.enabled lessons.feedback.enabled": "epochs: 0 switches a lesson off",
    "lessons.corrections.batch_size lessons.words.batch_size lessons.feedback.batch_size": "a step has 8 lines",
    "lessons.words.max_tokens": "a text is learned in pieces of 256 tokens",
    "lessons.feedback.beta lessons.picks.beta": "beta is 0.1",
    "lessons.feedback.desirable_weight lessons.feedback.undesirable_weight": "praise and blame count alike",
    "reward_model.learning_curve": "fits to fewer picks only showed what more picks bring; there are none any more",
    "reward_model.backbone": "the reward model begins with the student",
    "reward_model.picks_per_step": "a step has 8 picks",
    "reward_model.head_learning_rate": "the head learns at 50 times reward_model.learning_rate",
    "reward_model.warmup_steps": "the fit warms up for four steps",
    "reward_model.centering": "it is 0.01",
    "reward_model.half_life_nights": "a pick's weight halves in 14 nights",
    "reward_model.max_tokens": "picks of more than 1,024 tokens are left out",
    "learned_reward.format": "an answer to your own prompts that is complete earns 0.5",
    "learned_reward.language": "an answer in the script of your own prompt earns 0.5",
    "learned_reward.kl_coefficient": "it is at least 0.02 while a learned reward is used; raise grpo.kl_coefficient",
    "reward.correct": "a correct answer earns 1",
    "sandbox.workers": "there is a program for each core",
    "on_policy.revision": "name a folder with that revision in on_policy.teacher",
    "optimizer.betas optimizer.epsilon optimizer.weight_decay": "AdamW has betas 0.9 and 0.95, and no weight decay",
    "optimizer.max_grad_norm": "gradients are clipped to the norm 1",
    "lora.lesson_rate_factor": "lessons of adapters learn at ten times their rate",
    "engine.lora": "the engine serves the adapters of `lora`",
    "trainer_processes": "one process trains on each of hardware.trainer_gpus",
    "devices": "name hardware.engine_gpu and hardware.trainer_gpus",
    "exam.further_targets": "an exam has one target; make the others guards",
    "exam.alpha_spending": "alpha is spent on the looks of one night's exam (docs/exam-and-decision.md)",
    "exam.vault": "guards are held against the first student as well",
    "exam.bootstrap_samples": "intervals come from 10,000 draws",
    "exam.target.after exam.guards.N.after": "an exam takes the first problems of the split",
    "exam.target.temperature exam.guards.N.temperature": "samples are drawn at temperature 1",
    "teach.gamma teach.trace_decay": "traces fade by 0.99 · 0.95 with each token",
    "teach.rank": "the day's adapter has rank 16",
}
REMOVED = {option: f"use {place}" for option, place in MOVED.items()} | {
    option: instead for group, instead in INSTEAD.items() for option in group.split()
}


def without_removed(data: Data) -> Data:
    """Return a configuration that an earlier version has frozen: moved options at their places, none that is gone."""
    for option, place in MOVED.items():
        *sections, name = option.split(".")
        for holder in _sections(data, sections):
            if name in holder:
                _put(data, place, holder[name])
    if isinstance(judge := data.get("judge"), dict) and judge.get("checkpoint") is not None:
        judge["endpoint"] = None  # earlier versions gave a judge in a folder an empty address
    for option in REMOVED:
        *sections, name = option.split(".")
        for holder in _sections(data, sections):
            holder.pop(name, None)
    return data


def _sections(data: Any, keys: Sequence[str]) -> Iterator[Data]:
    """Yield the mappings at a place, as far as they are there."""
    if not keys:
        yield from [data] if isinstance(data, dict) else []
    elif keys[0] == "N":
        for item in data if isinstance(data, list) else []:
            yield from _sections(item, keys[1:])
    elif isinstance(data, dict):
        yield from _sections(data.get(keys[0]), keys[1:])


def _put(data: Data, place: str, value: Any) -> None:
    *sections, name = place.split(".")
    for key in sections:
        data = data.setdefault(key, {})
    data[name] = value
