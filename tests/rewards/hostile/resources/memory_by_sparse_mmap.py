# what: reserves 16 TB of addresses without a page behind them
# allowed: out_of_memory crashed
# test: assert solve() == 1 << 44
# needs: limits

import mmap


def solve():
    return len(mmap.mmap(-1, 1 << 44, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000))
