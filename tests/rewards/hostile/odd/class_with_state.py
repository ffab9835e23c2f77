# what: a stack with methods that change it
# allowed: correct
# test: stack = Stack(); stack.push(1); stack.push(2); assert stack.pop() == 2 and stack.size == 1 and len(stack) == 1
# entry: Stack


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    @property
    def size(self):
        return len(self.items)

    def __len__(self):
        return self.size
