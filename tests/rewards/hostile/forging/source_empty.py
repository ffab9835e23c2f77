# what: no source at all
# allowed: no_answer
# test: assert solve(3) == 4
# bytes: ""

