# what: keeps the judge's function of one call and uses it in another
# allowed: wrong crashed
# test: assert solve(lambda x: x == 4) is False
# test: assert solve(lambda x: x == 5) == "night-key-8f30d6a7b15ec294"

kept = []


def solve(check):
    kept.append(check)
    return kept[0](4)
