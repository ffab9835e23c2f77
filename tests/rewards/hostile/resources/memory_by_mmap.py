# what: anonymous maps of 64 MB, written to, at most 4 GB
# allowed: out_of_memory crashed
# test: assert solve() == 64
# seconds: 2
# memory_mb: 128
# needs: limits

import mmap


def solve():
    maps = []
    for _ in range(64):
        maps.append(mmap.mmap(-1, 64 << 20))
        for page in range(0, 64 << 20, 4096):
            maps[-1][page] = 1
    return len(maps)
