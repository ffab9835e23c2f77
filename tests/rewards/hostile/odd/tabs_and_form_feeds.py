# what: tabs for indentation, form feeds, blanks at line ends and no line end at the end
# allowed: correct
# test: assert solve(3) == 4
# bytes: text.replace("    ", "\t").replace("\n\n", "\n\x0c\n  \t\n").rstrip("\n")


def solve(n):
    if n > 0:
        n += 1
    return n
