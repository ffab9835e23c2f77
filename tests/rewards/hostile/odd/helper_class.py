# what: a class that does the work, behind a function
# allowed: correct
# test: assert solve([3, 1, 2]) == [1, 2, 3]


class Sorter:
    def __init__(self, values):
        self.values = values

    def run(self):
        return sorted(self.values)


def solve(values):
    return Sorter(values).run()
