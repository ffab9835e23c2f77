# what: map, zip, filter, enumerate, reversed and dictionary views, consumed by the test
# allowed: correct
# test: assert list(solve("map")) == [2, 4]
# test: assert list(solve("zip")) == [(1, "a"), (2, "b")]
# test: assert list(solve("filter")) == [1]
# test: assert dict(solve("enumerate")) == {0: "a", 1: "b"}
# test: assert list(solve("reversed")) == [2, 1]
# test: assert list(solve("keys")) == ["a", "b"]


def solve(kind):
    return {
        "map": map(lambda x: 2 * x, [1, 2]),
        "zip": zip([1, 2], "ab"),
        "filter": filter(lambda x: x % 2, [1, 2]),
        "enumerate": enumerate("ab"),
        "reversed": reversed([1, 2]),
        "keys": {"a": 1, "b": 2}.keys(),
    }[kind]
