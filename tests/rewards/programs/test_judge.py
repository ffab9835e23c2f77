import pytest

from rewards.programs.judge import free_names


@pytest.mark.parametrize(
    ("texts", "entry_point", "names"),
    [
        (["assert f(1) == 2"], "f", ["f"]),
        (["assert f(1) == 2"], None, ["f"]),
        (["assert sum(1, 2) == 3"], "sum", ["sum"]),
        (["assert sum(1, 2) == 3"], None, ["sum"]),
        (["assert set(f(1)) == set((2,))"], None, ["f"]),
        (["assert math.isclose(f(1), 2.0)"], "f", ["f"]),
        (["import numpy as np", "assert f(np.pi)"], "f", ["f"]),
        (["root = Node(1)", "assert depth(root) == 1"], "depth", ["depth", "Node"]),
        (["def check(candidate):\n    assert candidate(2) == poly([1], 2)", "check(find)"], "find", ["find", "poly"]),
        (["assert all(f(x) for x in (1, 2))"], "f", ["f"]),
        (["try:\n    f()\nexcept ValueError as error:\n    assert str(error)"], "f", ["f"]),
    ],
)
def test_names_that_the_program_must_provide(texts: list[str], entry_point: str | None, names: list[str]) -> None:
    assert free_names(texts, entry_point) == names
