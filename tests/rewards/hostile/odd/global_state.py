# what: a table that is kept between the calls
# allowed: correct
# test: assert solve("a") == 1
# test: assert solve("b") == 1
# test: assert solve("a") == 2

seen = {}


def solve(key):
    global last
    last = key
    seen[key] = seen.get(key, 0) + 1
    return seen[last]
