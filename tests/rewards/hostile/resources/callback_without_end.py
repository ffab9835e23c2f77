# what: calls the judge's own function for ever
# allowed: timeout
# test: assert solve(lambda n: n) == 4


def solve(echo):
    while True:
        echo(4)
