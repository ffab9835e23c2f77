# what: reads the environment of itself and of the first process
# allowed: wrong
# test: assert len(solve()) > 0


def solve():
    found = []
    for process in ("self", "1", "2", "thread-self"):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                found += [part for part in file.read().split(b"\0") if part]
        except OSError:
            continue
    return found
