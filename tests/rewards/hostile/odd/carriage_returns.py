# what: line ends of Windows
# allowed: correct
# test: assert solve("a\nb") == ["a", "b", "two\nlines"]
# bytes: text.replace("\n", "\r\n")


def solve(text):
    more = """two
lines"""
    return text.split("\n") + [more]
