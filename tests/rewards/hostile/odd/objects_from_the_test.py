# what: the test makes objects of the program's class, links them and hands them over
# allowed: correct
# test: root = Node(1); root.left = Node(2); root.right = Node(3); root.left.left = Node(4); assert height(root) == 3
# test: assert root.left.value == 2
# entry: height


class Node:
    def __init__(self, value):
        self.value = value
        self.left = None
        self.right = None


def height(node):
    return 0 if node is None else 1 + max(height(node.left), height(node.right))
