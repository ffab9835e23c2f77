# what: leaves a file in /dev/shm
# allowed: forbidden crashed
# test: assert solve() == 1


def solve():
    with open("/dev/shm/nightschool-hostile-shm", "w") as file:
        return file.write("x")
