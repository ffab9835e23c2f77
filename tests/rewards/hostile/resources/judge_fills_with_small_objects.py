# what: a range that makes the test keep small objects until its memory is full
# allowed: timeout out_of_memory crashed
# test: kept = []
# test: for number in solve(): kept.append([number])
# needs: limits


def solve():
    return range(10**12)
