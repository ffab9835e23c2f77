# what: nan, infinities, minus zero and floats to the last digit
# allowed: correct
# test: assert solve("nan") != solve("nan")
# test: assert math.isnan(solve("nan"))
# test: assert solve("inf") == float("inf") and -solve("inf") == solve("-inf")
# test: assert math.copysign(1, solve("-0.0")) == -1
# test: assert solve("0.1") + 0.2 == 0.30000000000000004
# test: assert solve("5e-324") == 5e-324


def solve(text):
    return float(text)
