"""Options of earlier versions: what replaces each, for whoever still sets it."""

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
# What holds instead, by section and options; N stands for the items of a list.
INSTEAD = {
    "": {
        "devices": "name hardware.engine_gpu and hardware.trainer_gpus",
        "trainer_processes": "one process trains on each of hardware.trainer_gpus",
        "on_policy.revision": "name a folder with that revision in on_policy.teacher",
        "reward.correct": "a correct answer earns 1",
        "sandbox.workers": "there is a program for each core",
        "engine.lora": "the engine serves the adapters of `lora`",
        "lora.lesson_rate_factor": "lessons of adapters learn at ten times their rate",
    },
    "grpo.": {
        "temperature top_p": "training samples from the policy itself",
        "credit_gamma credit_lambda": "turns are discounted by 0.99, and traces decay by 0.95",
        "sampler_ratio_cap": "a token's weight against the sampler is at most 2",
        "overlong_share overlong_penalty": "overlong: shape takes up to 1 off, over the limit's last fifth",
        "solve_rate_decay": "with each round earlier attempts count 0.7 times as much",
        "quiz_problems": "quizzes between rounds have 100 problems; for the others there is lessons.quiz_problems",
    },
    "distill.": {
        "choice": "a lesson's solutions always come shuffled",
        "own_answers_rate": "self_distill learns at 5e-6",
        "warmup_steps": "every lesson warms up for two steps",
    },
    "lessons.": {
        "examine": "quizzes come before and after each lesson; exam.after_lessons adds an exam for benchmarks",
        "corrections.enabled words.enabled feedback.enabled": "epochs: 0 switches a lesson off",
        "corrections.batch_size words.batch_size feedback.batch_size": "a step has 8 lines",
        "words.max_tokens": "a text is learned in pieces of 256 tokens",
        "feedback.beta picks.beta": "beta is 0.1",
        "feedback.desirable_weight feedback.undesirable_weight": "praise and blame count alike",
    },
    "reward_model.": {
        "learning_curve": "fits to fewer picks only showed what more picks bring; there are none any more",
        "backbone": "the reward model begins with the student",
        "head_learning_rate": "the head learns at 50 times reward_model.learning_rate",
        "picks_per_step warmup_steps centering": "a step has 8 picks, four steps warm up, and the centering is 0.01",
        "half_life_nights max_tokens": "a pick's weight halves in 14 nights; it has at most 1,024 tokens",
    },
    "learned_reward.": {
        "format language": "an answer to your prompts earns 0.5 where it is complete, and 0.5 in their script",
        "kl_coefficient": "it is at least 0.02 while a learned reward is used; raise grpo.kl_coefficient",
    },
    "judge.": {
        "orders": "a judge sees the same answers in three orders",
        "context_tokens gpu_memory_share": "a judge in a folder has 4,096 tokens and 0.3 of the GPU's memory",
    },
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
