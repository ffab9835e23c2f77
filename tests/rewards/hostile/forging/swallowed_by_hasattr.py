# what: AttributeError and exits where the test only asks whether something is there
# allowed: wrong crashed
# test: assert not hasattr(solve(3), "value") and solve(3).other == 4


class Answer:
    def __getattr__(self, name):
        raise AttributeError(name)


def solve(n):
    return Answer()
