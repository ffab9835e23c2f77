# what: re, itertools, heapq, bisect, statistics, string, textwrap, operator and functools.reduce
# allowed: correct
# test: assert solve("b1 a22 c3") == [("a", 22), ("b", 1), ("c", 3)]

import bisect
import heapq
import itertools
import operator
import re
import statistics
import string
import textwrap
from functools import partial, reduce


def solve(text):
    found = re.findall(r"([a-z])(\d+)", text)
    heap = [(letter, int(number)) for letter, number in found if letter in string.ascii_lowercase]
    heapq.heapify(heap)
    assert reduce(operator.add, itertools.chain([1], [2])) == statistics.mean([2, 4]) == 3
    assert bisect.bisect([1, 2, 3], 2) == 2 and textwrap.dedent("  x") == "x" and partial(max, 1)(2) == 2
    return [heapq.heappop(heap) for _ in range(len(heap))]
