"""The plan of a night: the order of its stages, and what each one takes from those before."""

from itertools import pairwise

from conf.load import STARTER, load_night
from tasks.plan import Plan, Planned, plan_night, plan_round

ROUNDS = "grpo={rounds: 2, refills: 1, quiz_every_rounds: 1}"


def plan(*settings: str) -> Plan:
    return plan_night(load_night(STARTER, [ROUNDS, *settings]))


def inputs(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {stage.path: stage.inputs for stage in plan.stages}


FULL = (
    "stages=[distill, {grpo: 1}, lessons, self_distill, {on_policy: 1}, distill]",
    "on_policy.teacher=starter",
    "distill.teacher={base_url: 'http://127.0.0.1:8000/v1', model: wise}",
    "preference_learning=both",
    "exam.after_lessons=true",
    "lora={rank: 4}",
)


def test_the_starter_night() -> None:
    looks = [f"exam/look-{number}" for number in range(1, 10)]
    assert list(inputs(plan("stages=[distill, grpo]"))) == [
        *("enroll", "freeze_journal", "quiz/start", "rehearsal", "distill", "quiz/distill-before", "quiz/distill"),
        *("distill_check/verdict", "fit_reward_model", "picks/champion", "owner_prompts", "rank_picks"),
        *("round-01", "round-02", "quiz/rounds", "picks/candidate", *looks),
        *("evaluate/champion", "evaluate/candidate", "evaluate/first"),
        *("decide", "promote", "push", "report", "prune"),
    ]


def test_every_input_comes_before_and_the_report_after_all_but_prune() -> None:
    for settings in ((), FULL):
        stages = plan(*settings).stages
        paths = [stage.path for stage in stages]
        assert len(paths) == len(set(paths))
        assert paths[-2:] == ["report", "prune"]
        last = {"prune"}
        for number, stage in reversed(list(enumerate(stages))):
            assert set(stage.inputs) <= set(paths[:number]), stage.path
            assert stage.path in last  # some stage on the way to the end takes it
            last |= set(stage.inputs)


def test_a_night_that_may_begin_with_the_day_copy() -> None:
    taken = inputs(plan("start_from=day"))
    assert taken["choose_start"] == ("quiz/start", "quiz/day", "picks/champion", "picks/day")
    assert "choose_start" in taken["distill"]


def test_steps_follow_each_other() -> None:
    taken = inputs(plan(*FULL))
    chain = ["distill", "quiz/distill", "distill_check/verdict", "round-01", "merge", "lessons", "quiz/lessons"]
    chain += ["lessons_check/verdict", "self_distill", "quiz/self_distill", "self_distill_check/verdict", "round-02"]
    chain += ["merge-2", "distill-2"]
    for before, step in pairwise(chain):
        assert before in taken[step]
    assert taken["round-02"] == ("enroll_teacher", "self_distill_check/verdict")
    assert taken["ask_teacher-2"] == ("merge-2",)
    assert taken["quiz/rounds-2"] == ("merge-2",)
    assert taken["exam/look-1"] == ("distill-2_check/verdict",)
    assert taken["evaluate/whole-distilled"] == ("exam/look-9",)


def test_a_rounds_refills_and_a_days_channels_are_nested() -> None:
    nested = plan(*FULL, "lessons.quiz_problems=0").nested
    assert list(nested) == ["round-01", "lessons", "round-02"]
    refilled = inputs(nested["round-01"])
    assert refilled["score"] == ("sample", "score_by_reward_model")
    assert (refilled["refill-1/select_prompts"], refilled["update"]) == (("credit",), ("refill-1/credit",))
    assert inputs(nested["lessons"]) == {
        "corrections": (),
        "words": ("corrections",),
        "feedback": ("words",),
        "picks": ("feedback",),
    }


def test_a_stage_that_did_not_run_is_replaced_by_its_inputs() -> None:
    round_plan = plan_round(load_night(STARTER, [ROUNDS]))
    results = {"credit": 1, "sample": 2, "score_by_reward_model": 3}
    assert round_plan.upstream("score", results) == [2, 3]
    assert round_plan.upstream("score", {"sample": 2}) == [2]  # no reward model
    assert round_plan.upstream("update", results) == [1]  # no refill
    assert round_plan.upstream("select_prompts", results) == []
    shared = Plan([Planned("a"), Planned("b", ("a",)), Planned("c", ("a",)), Planned("d", ("b", "c"))])
    assert shared.upstream("d", {"a": 1}) == [1]
