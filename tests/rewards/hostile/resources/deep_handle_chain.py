# what: a chain of 200,000 objects whose release recurses
# allowed: wrong crashed
# test: assert solve().value == 4


class Node:
    value = 3

    def __init__(self, next):
        self.next = next


def solve():
    node = None
    for _ in range(200_000):
        node = Node(node)
    return node
