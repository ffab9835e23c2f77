# what: bytes, bytearrays and complex numbers
# allowed: correct
# test: assert solve("é") == b"\xc3\xa9"
# test: assert root(-1) == 1j
# test: assert buffer(3) == bytearray(b"\x00\x01\x02")


def solve(text):
    return text.encode()


def root(n):
    return complex(0, abs(n) ** 0.5)


def buffer(n):
    return bytearray(range(n))
