"""Where stages and rounds lie in a night's folder."""

from pathlib import Path

from conf.storage.layout import committed_rounds, is_round, passes, ranking_path, rounds, run_name


def test_the_ranking_before_a_blocks_first_round_lies_beside_the_rounds() -> None:
    assert [ranking_path(1, 0), ranking_path(1, 1)] == ["rank_picks", "round-01/rank_picks"]
    assert [ranking_path(9, 8), ranking_path(9, 12)] == ["rank_picks-9", "round-12/rank_picks"]


def test_rounds_are_in_order_of_their_numbers(tmp_path: Path) -> None:
    for path in ("round-100", "round-09/refill-2", "round-09/refill-1", "distill"):
        (tmp_path / path).mkdir(parents=True)
    assert [number for number, _ in rounds(tmp_path)] == [9, 100]
    assert [folder.name for folder in passes(tmp_path / "round-09")] == ["round-09", "refill-1", "refill-2"]
    assert is_round("round-09")
    assert not is_round("round-09/refill-1")
    (tmp_path / "round-09" / "checkpoint").mkdir()
    assert committed_rounds(tmp_path) == []
    (tmp_path / "round-09" / "checkpoint" / "manifest.json").touch()
    assert committed_rounds(tmp_path) == [tmp_path / "round-09"]


def test_a_stage_is_named_with_its_numbers() -> None:
    assert run_name("round-03/refill-1/select_prompts") == "round 3 · refill 1 · select prompts"
    assert run_name("quiz/rounds-2") == "quiz · rounds 2"
