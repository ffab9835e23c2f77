# what: the test's function is called with the program's own objects and reads them
# allowed: correct
# test: assert solve(lambda item: item.size) == [1, 2]
# test: assert solve(lambda item: item.double()) == [2, 4]


class Item:
    def __init__(self, size):
        self.size = size

    def double(self):
        return 2 * self.size


def solve(key):
    return [key(Item(1)), key(Item(2))]
