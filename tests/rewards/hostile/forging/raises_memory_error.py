# what: raises MemoryError without using memory: told as that, and earns nothing
# allowed: out_of_memory
# test: assert solve(3) == 4


def solve(n):
    raise MemoryError
