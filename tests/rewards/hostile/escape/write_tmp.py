# what: leaves a file in /tmp
# allowed: forbidden crashed
# test: assert solve() == 1


def solve():
    with open("/tmp/nightschool-hostile-tmp", "w") as file:
        return file.write("x")
