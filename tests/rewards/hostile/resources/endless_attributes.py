# what: objects whose every attribute is a new object, as many as the test asks for
# allowed: wrong crashed timeout out_of_memory
# test: node = solve()
# test: while node.next is not None: node = node.next
# test: assert node.value == 4


class Node:
    value = 3

    @property
    def next(self):
        return Node()


def solve():
    return Node()
