# what: works on its argument and returns nothing; the argument that the judge holds does not change
# allowed: wrong
# test: values = [3, 1, 2]; solve(values); assert values == [1, 2, 3]


def solve(values):
    values.sort()
