# what: reads the host's list of users
# allowed: forbidden crashed
# test: assert solve() is True


def solve():
    with open("/etc/passwd") as file:
        return "root" in file.read()
