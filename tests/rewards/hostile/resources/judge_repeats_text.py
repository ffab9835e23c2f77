# what: a text of 16 MB that the test formats into its message
# allowed: wrong timeout out_of_memory
# test: answer = solve(); assert answer == "4", f"{answer!r}" * 3


def solve():
    return "\x00" * 2_000_000
