# what: anonymous maps of 256 MB, written to, at most 4 GB
# allowed: out_of_memory crashed
# test: assert solve() == 16
# needs: limits

import mmap


def solve():
    maps = []
    for _ in range(16):
        maps.append(mmap.mmap(-1, 256 << 20))
        for page in range(0, 256 << 20, 4096):
            maps[-1][page] = 1
    return len(maps)
