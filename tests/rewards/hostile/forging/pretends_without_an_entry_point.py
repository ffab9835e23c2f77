# what: an object with the methods of a str, where the judge was not told which name is the entry point
# allowed: wrong
# test: assert solve("x").startswith("four")
# test: assert solve("y").isupper()
# entry: none


class Agreeable:
    def startswith(self, *parts):
        return True

    isupper = startswith


def solve(text):
    return Agreeable()
