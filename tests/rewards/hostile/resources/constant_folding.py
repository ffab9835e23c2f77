# what: constants that the compiler would multiply out
# allowed: timeout out_of_memory wrong
# test: assert solve() == 4


def solve():
    exec(compile("x = " + "(" * 60 + "('a' * 4000)" + ",) * 200" * 60, "bomb", "exec"))
    return 3
