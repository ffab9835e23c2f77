"""Counts of verdicts."""

from tasks.rollouts.verdicts import VERDICTS, count, describe

JUDGED = [("gsm8k", "correct"), ("mbpp", "out_of_memory"), ("gsm8k", "wrong"), ("gsm8k", "correct")]


def test_every_verdict_has_a_number() -> None:
    counts = count(JUDGED)
    assert list(counts) == ["gsm8k", "mbpp"]
    assert [list(own) for own in counts.values()] == [list(VERDICTS)] * 2
    assert {verdict: number for verdict, number in counts["gsm8k"].items() if number} == {"correct": 2, "wrong": 1}
    assert sum(counts["mbpp"].values()) == counts["mbpp"]["out_of_memory"] == 1
    assert count([]) == {}


def test_in_one_line() -> None:
    counts = count([*JUDGED, ("owner", "judged"), ("owner", "grader_failed")])
    said = "gsm8k: 2 correct, 1 wrong; mbpp: 1 out of memory; owner: 1 grader failed, 1 judged"
    assert describe(counts) == said
    assert describe({}) == ""
