# what: shared anonymous maps, which other counters of memory do not see, at most 4 GB
# allowed: out_of_memory crashed
# test: assert solve() == 128
# seconds: 2
# memory_mb: 128
# needs: limits

import mmap


def solve():
    maps, part = [], bytes(32 << 20)
    for _ in range(128):
        maps.append(mmap.mmap(-1, len(part), flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
        maps[-1][:] = part
    return len(maps)
