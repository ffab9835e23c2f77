# what: all primes below 300,000, by a sieve
# allowed: correct
# test: assert solve(300_000) == 25997


def solve(n):
    sieve = [True] * n
    sieve[0] = sieve[1] = False
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(range(i * i, n, i))
    return sum(sieve)
