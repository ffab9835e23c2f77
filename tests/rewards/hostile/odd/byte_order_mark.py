# what: begins with a byte order mark and an encoding comment
# allowed: correct
# test: assert solve(3) == "é4"
# bytes: "\ufeff# -*- coding: utf-8 -*-\n" + text


def solve(n):
    return f"é{n + 1}"
