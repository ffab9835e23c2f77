# what: an async function that is run by hand, without an event loop
# allowed: correct
# test: assert solve(3) == 6


async def double(n):
    return 2 * n


async def work(n):
    return await double(n)


def solve(n):
    coroutine = work(n)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
