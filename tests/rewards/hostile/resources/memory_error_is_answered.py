# what: fills its memory, catches the MemoryError and answers something else
# allowed: wrong out_of_memory
# test: assert solve() == 1 << 33
# needs: limits


def solve():
    try:
        return len(bytes(1 << 33))
    except MemoryError:
        return 0
