# what: a coding line that makes other text of the source
# allowed: crashed wrong
# test: assert solve(3) == "é"
# bytes: "# -*- coding: utf-7 -*-\n" + text


def solve(n):
    return "+AOkA6Q-"
