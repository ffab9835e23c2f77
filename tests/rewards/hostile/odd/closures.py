# what: functions made by functions, with nonlocal state
# allowed: correct
# test: assert solve(3) == [1, 2, 3]


def counter():
    count = 0

    def step():
        nonlocal count
        count += 1
        return count

    return step


def solve(n):
    step = counter()
    return [step() for _ in range(n)]
