# what: Counter, defaultdict, OrderedDict, ChainMap and deque, where plain ones are compared
# allowed: correct
# test: assert solve("abca") == {"a": 2, "b": 1, "c": 1}
# test: assert groups(["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}
# test: assert ordered([("b", 1), ("a", 2)]) == {"a": 2, "b": 1}
# test: assert list(turned([1, 2, 3])) == [3, 1, 2]

from collections import Counter, OrderedDict, defaultdict, deque


def solve(text):
    return Counter(text)


def groups(words):
    out = defaultdict(list)
    for word in words:
        out[len(word)].append(word)
    return out


def ordered(pairs):
    return OrderedDict(sorted(pairs))


def turned(values):
    out = deque(values)
    out.rotate(1)
    return out
