# what: 8 MB that unpack to 8 GB
# allowed: out_of_memory timeout
# test: assert solve() == 8 << 30
# needs: limits

import zlib


def solve():
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return len(zlib.decompress(block * 8192, wbits=-15))
