# what: leaves a file where it stands
# allowed: forbidden crashed
# test: assert solve() == 1


def solve():
    with open("nightschool-hostile-here", "w") as file:
        return file.write("x")
