# what: makes a named block of shared memory
# allowed: forbidden crashed
# test: assert solve() == 4096

from multiprocessing import shared_memory


def solve():
    return shared_memory.SharedMemory("nightschool-hostile-block", create=True, size=4096).size
