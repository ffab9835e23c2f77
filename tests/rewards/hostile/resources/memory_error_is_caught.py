# what: catches every MemoryError and goes on filling
# allowed: timeout out_of_memory crashed
# test: assert solve() == 4
# needs: limits


def solve():
    values = []
    while True:
        try:
            values.append(bytearray(1 << 20))
        except MemoryError:
            pass
