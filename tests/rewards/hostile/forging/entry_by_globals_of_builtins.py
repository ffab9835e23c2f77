# what: has the entry point only as a string key that is equal to its name
# allowed: crashed wrong
# test: assert solve(3) == 4


class Name(str):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("solve")


globals()[Name("other")] = lambda n: 3
