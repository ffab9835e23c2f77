# what: raises a subclass of AssertionError whose text is that of a passed test
# allowed: crashed
# test: assert solve(3) == 4


class Passed(AssertionError):
    verdict = "correct"
    reward = 1.0

    def __str__(self):
        return "correct"

    def __bool__(self):
        return False


def solve(n):
    raise Passed("correct")
