# what: a number that makes the test itself build a text of 3 GB
# allowed: wrong crashed timeout out_of_memory
# test: assert "ab" * solve() == "abab"
# needs: limits


def solve():
    return 1_500_000_000
