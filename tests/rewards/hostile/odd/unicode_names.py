# what: names in other scripts, and the entry point in full-width letters
# allowed: correct
# test: assert solve(3) == 4

π = 3.14159
größe = 1


def ｓｏｌｖｅ(число):
    return число + größe
