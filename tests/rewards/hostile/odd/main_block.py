# what: a main block that reads input and prints, which must not run
# allowed: correct
# test: assert solve(3) == 4


def solve(n):
    return n + 1


if __name__ == "__main__":
    n = int(input("n: "))
    print(solve(n))
