"""Counts of verdicts."""

from tasks.rollouts.verdicts import VERDICTS, as_metrics, count, describe

JUDGED = [("gsm8k", "correct"), ("mbpp", "out_of_memory"), ("gsm8k", "wrong"), ("gsm8k", "correct")]


def test_every_verdict_has_a_number() -> None:
    counts = count(JUDGED)
    assert list(counts) == ["gsm8k", "mbpp"]
    assert [list(own) for own in counts.values()] == [list(VERDICTS)] * 2
    assert {verdict: number for verdict, number in counts["gsm8k"].items() if number} == {"correct": 2, "wrong": 1}
    assert sum(counts["mbpp"].values()) == counts["mbpp"]["out_of_memory"] == 1
    assert count([]) == {}


def test_in_one_line() -> None:
    assert describe(count(JUDGED)) == "gsm8k: 2 correct, 1 wrong; mbpp: 1 out of memory"
    assert describe({}) == ""


def test_as_metrics() -> None:
    metrics = as_metrics(count(JUDGED))
    assert metrics["verdicts/gsm8k/correct"] == 2
    assert metrics["verdicts/mbpp/correct"] == 0
    assert len(metrics) == 2 * len(VERDICTS)


def test_judged_is_a_verdict_of_the_owners_prompts_alone() -> None:
    counts = count([*JUDGED, ("owner", "judged"), ("owner", "grader_failed")])
    assert describe(counts).endswith("; owner: 1 grader failed, 1 judged")
    assert counts["owner"]["judged"] == 1
    assert "judged" not in counts["gsm8k"]
