# what: raises what a broken channel would raise in the judge
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise [EOFError, OSError, BrokenPipeError, ConnectionResetError][n]("the channel is gone")
