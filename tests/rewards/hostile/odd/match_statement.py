# what: structural matching, walrus and f-strings with nested quotes
# allowed: correct
# test: assert solve({"kind": "add", "values": [1, 2]}) == "3"
# test: assert solve((1, 2)) == "pair 1"
# test: assert solve(None) == "nothing"


def solve(value):
    match value:
        case {"kind": "add", "values": [*numbers]} if (total := sum(numbers)) > 0:
            return f"{total}"
        case (first, _):
            return f"pair {first!r}"
        case _:
            return "nothing"
